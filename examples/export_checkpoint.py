"""Turn a checkpoint of verl into a model folder."""

from compositionality.verbs import main

if __name__ == "__main__":
    main("export_checkpoint")
