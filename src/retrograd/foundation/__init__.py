"""Imports on first use, source lines and messages: used by every package, without arrays, tensors or operators."""
