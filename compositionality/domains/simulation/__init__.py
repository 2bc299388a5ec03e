"""Predicting what a program does: rows of CodeI/O and CRUXEval as Guru has them, and problems of our own."""
