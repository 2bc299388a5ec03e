"""What both training engines share: the prompt stream, seeds, run folders, checkpoints, metrics, commands."""
