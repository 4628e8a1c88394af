"""Convolutions of any number of dimensions, and their transposes."""
