"""What training needs, by formula, before it starts: memory of GPUs and nodes, disk. Time is not forecast."""
