"""What explains a result: the influence of single updates; scaling laws with tests of their predictions."""
