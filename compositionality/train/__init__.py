"""Training: the tiny model, verl, and what they share."""
