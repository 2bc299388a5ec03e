"""Turn a checkpoint of verl into a model folder."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("export_checkpoint")
