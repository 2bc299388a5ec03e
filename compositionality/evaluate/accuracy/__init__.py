"""Accuracy of checkpoints by level and skill, over seeds, and of ablations."""
