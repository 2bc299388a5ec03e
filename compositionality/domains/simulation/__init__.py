"""Predicting what a program does: rows of CodeI/O and CRUXEval as Guru has them, and problems of our own."""

from compositionality.domains.simulation.task import TASK as TASK
