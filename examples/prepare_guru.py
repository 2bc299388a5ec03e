"""Make rows of several domains ready for RL: check, filter by pass rate, mix, order, hold out, cut subsets."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("prepare_guru")
