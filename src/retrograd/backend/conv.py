"""Kernels of convolutions."""

__all__: list[str] = []
