"""Activation functions beyond those in `pointwise`."""
