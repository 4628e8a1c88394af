"""Kernels of linear algebra that NumPy lacks."""

__all__: list[str] = []
