"""Bessel functions and their relatives."""
