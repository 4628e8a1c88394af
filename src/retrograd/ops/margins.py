"""Losses that compare scores by margins, and those of distributions."""
