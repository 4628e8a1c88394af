"""PyTorch's calls and known differences of Bessel functions: most have no derivative in PyTorch."""

NO_GRADIENT = dict.fromkeys(
    [
        *(f"special.bessel_{kind}" for kind in ("j0", "j1", "y0", "y1")),
        *(f"special.{scaled}modified_bessel_k{order}" for scaled in ("", "scaled_") for order in (0, 1)),
        "special.spherical_bessel_j0",
        "special.airy_ai",
    ],
    ("x",),
)

_SMALLEST = "at the smallest numbers, PyTorch's is infinite or NaN"
KNOWN = {
    (
        "special.i1",
        "special",
    ): "SciPy's function of order 2 is NaN at inf and at the smallest number; PyTorch's at NaN is 1",
    ("special.i1e", "special"): "the same",
    ("special.modified_bessel_k0", "special"): _SMALLEST,
    ("special.modified_bessel_k1", "special"): _SMALLEST,
    ("special.scaled_modified_bessel_k0", "special"): _SMALLEST,
    ("special.scaled_modified_bessel_k1", "special"): _SMALLEST,
    ("special.airy_ai", "special"): "PyTorch's is wrong in the eighth digit at -3",
}
