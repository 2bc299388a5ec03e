"""Profiles, studies, claims and problem sets as YAML, and the one reader of settings."""
