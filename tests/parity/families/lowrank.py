"""Low-rank factorisations: test_lowrank_parity.py compares what does not depend on the random projections."""

NO_COUNTERPART = {"svd_lowrank": "random", "pca_lowrank": "random"}
