"""Kernels of sorting, searching and statistics."""

__all__: list[str] = []
