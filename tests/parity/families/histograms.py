"""Counting: inputs that only ours differentiates by, or that PyTorch refuses to."""

NO_GRADIENT = {"bincount": ("weights",), "histogram": ("x", "weight")}
