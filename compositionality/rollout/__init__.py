"""Asking a model many times, resumably, and keeping the judged answers."""
