"""Kernels of pooling."""

__all__: list[str] = []
