"""Scaling laws of RL: loss against model size and compute or data, fitted, extrapolated without another fit."""
