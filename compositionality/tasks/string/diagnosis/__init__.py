"""What went wrong in a completion to a string problem, found by executing the problem's own operators."""
