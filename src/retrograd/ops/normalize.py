"""Normalisations: batch, group, instance, root mean square, local response."""
