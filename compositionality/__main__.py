"""``python -m compositionality VERB key=value …``: as the command ``compositionality``."""

from compositionality.verbs import main

if __name__ == "__main__":
    main()
