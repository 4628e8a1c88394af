"""Sorting, ranking, searching, and sets."""
