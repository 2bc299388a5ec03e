"""Mathematics with a final answer in a box."""
