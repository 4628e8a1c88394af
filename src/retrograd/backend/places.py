"""Kernels that write into places: scattering, masks, windows of memory."""

__all__: list[str] = []
