"""Summarise accuracy by level over several seeds, and the differences between the arms."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("summarise_seeds")
