"""Factorisations by random projections: test_lowrank_parity.py compares what the random numbers do not change."""

NO_COUNTERPART = {"svd_lowrank": "random", "pca_lowrank": "random"}
