"""Sampling many completions per problem, resumably, and storing them with their verdicts."""
