"""Estimates with their intervals, p-values, sample sizes and pass@k. Arrays in, ``Estimate`` out."""
