"""Linear systems: solving, inverses, determinants, functions of matrices."""
