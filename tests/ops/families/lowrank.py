"""Reference implementations of factorisations by random projections, whose signs are random."""

RANDOM = "the signs of the factors are random: test_lowrank.py looks at their product"
SIGNS = "the signs of the factors depend on random numbers, which differ between dtypes"

WITHOUT = {"svd_lowrank": RANDOM, "pca_lowrank": RANDOM}
EXEMPT = {("svd_lowrank", "float32"): SIGNS, ("svd_lowrank", "complex"): SIGNS, ("pca_lowrank", "complex"): SIGNS}
