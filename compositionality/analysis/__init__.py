"""What explains a result: the influence of single updates. Scaling laws follow."""
