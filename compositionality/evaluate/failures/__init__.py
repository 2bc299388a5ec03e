"""Section 4.5: what went wrong in an answer, found by program; a language model as second judge is an option."""
