"""Histograms: inputs by which only retrograd differentiates, or which PyTorch refuses to differentiate."""

NO_GRADIENT = {"bincount": ("weights",), "histogram": ("x", "weight")}
