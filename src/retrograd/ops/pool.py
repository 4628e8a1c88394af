"""Pooling: the largest, the mean, the norm of windows, also adaptive ones."""
