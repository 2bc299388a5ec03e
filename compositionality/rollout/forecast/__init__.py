"""What sampling needs, by formula, before it starts: the model's shape, the machine, memory for weights and cache."""
