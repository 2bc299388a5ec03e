"""Keep the correct responses of a rollout as training data for SFT."""

from compositionality.verbs import main

if __name__ == "__main__":
    main("filter_rollouts")
