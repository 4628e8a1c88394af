"""Joining and cutting tensors, repeating them, grids."""
