"""Give a model another chat template: makes a model folder with the same weights, as links, for every engine."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("set_chat_template")
