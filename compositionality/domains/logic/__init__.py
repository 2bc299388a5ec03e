"""Logic puzzles: zebra, ordering, graph and grid transformation (ARC), rows of others and problems of our own."""
