"""Write a task's own solutions as training data for SFT, plain or with behaviours injected (Behavior Injection)."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("write_solutions")
