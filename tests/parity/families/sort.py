"""Sorting and searching: inputs by which only retrograd differentiates."""

NO_GRADIENT = {"unique": ("x",), "unique_consecutive": ("x",)}
