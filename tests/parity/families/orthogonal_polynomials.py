"""Orthogonal polynomials: they have no derivatives in PyTorch."""

NO_GRADIENT = dict.fromkeys(
    [
        *(f"special.{kind}chebyshev_polynomial_{letter}" for kind in ("", "shifted_") for letter in "tuvw"),
        *(f"special.{name}" for name in ("legendre_polynomial_p", "laguerre_polynomial_l")),
        *(f"special.hermite_polynomial_{kind}" for kind in ("h", "he")),
    ],
    ("x",),
)
