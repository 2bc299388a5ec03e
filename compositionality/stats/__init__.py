"""Numbers about numbers: intervals, random effects, bootstrap, pass@k, sample sizes. Arrays in, arrays out."""
