"""Passes, their managers, and partitions by capability."""
