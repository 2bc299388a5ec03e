"""Sample many completions per problem, resumably, and store them with their verdicts."""
