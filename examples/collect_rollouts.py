"""Sample n_samples completions of every problem and judge them."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("collect_rollouts")
