"""Padding: constant, reflected, replicated, circular."""
