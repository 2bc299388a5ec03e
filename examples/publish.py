"""Prepare a model folder, data or a study with a card for the Hugging Face Hub; uploads only with upload=true."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("publish")
