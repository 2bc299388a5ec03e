"""Accuracy by level over several seeds, and the differences between the arms."""

from compositionality.verbs import main

if __name__ == "__main__":
    main("summarise_seeds")
