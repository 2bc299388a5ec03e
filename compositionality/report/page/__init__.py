"""The report: one HTML page with every claim, figure and sample of a study, and the files behind it."""
