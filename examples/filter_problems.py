"""Keep the problems that a model solves in some samples but not in all."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("filter_problems")
