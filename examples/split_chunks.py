"""Cut a problem file into shuffled chunks, one for each iteration of rejection fine-tuning."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("split_chunks")
