"""Kernels of padding, resizing and sampling."""

__all__: list[str] = []
