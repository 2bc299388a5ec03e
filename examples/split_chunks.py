"""Cut a problem file into shuffled chunks, one for each iteration of rejection fine-tuning."""

from compositionality.verbs import main

if __name__ == "__main__":
    main("split_chunks")
