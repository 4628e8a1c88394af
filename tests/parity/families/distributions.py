"""Samples from distributions: exempt, tests/parity/test_creation_parity.py compares their moments."""

NO_COUNTERPART = {
    **dict.fromkeys(["binomial", "multinomial", "poisson", "sample_dirichlet", "standard_gamma"], "random"),
    **dict.fromkeys(["sample_beta", "sample_chi2", "sample_student_t"], "random, and PyTorch has classes for them"),
    "_standard_gamma_grad": "PyTorch's is right to four digits; test_creation_parity compares these",
}
