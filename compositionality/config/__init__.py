"""The Hydra tree, and the one way in which an entry point is run."""
