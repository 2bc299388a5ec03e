"""A model folder, data or a study as a folder with a card for the Hugging Face Hub; sent only with upload=true."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("publish")
