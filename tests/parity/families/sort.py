"""Sorting and searching: inputs that only ours differentiates by."""

NO_GRADIENT = {"unique": ("x",), "unique_consecutive": ("x",)}
