"""Keep the correct responses of a rollout as training data for SFT."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("filter_rollouts")
