"""The paper's claims compared with our results: our figures, intervals, a decision, and what would decide it."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("claims")
