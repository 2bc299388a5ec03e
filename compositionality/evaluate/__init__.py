"""Measure checkpoints: accuracy by level and by function, with intervals."""
