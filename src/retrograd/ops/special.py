"""Special functions: error functions, exponential integrals, entropies."""
