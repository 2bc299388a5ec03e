"""Explanations of results: the influence of single updates; scaling laws with tests of their predictions."""
