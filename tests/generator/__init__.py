"""Synthetic jobs with one planted cause or none, and the truth about each."""
