"""What runs along a dimension: sums, extremes, differences, integrals."""
