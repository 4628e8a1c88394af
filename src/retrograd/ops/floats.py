"""Floating-point numbers: their signs, parts, neighbours, and what is not finite."""
