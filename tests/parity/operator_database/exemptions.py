"""What differs from PyTorch, and why: (entry, aspect) -> reason.  An exemption that nothing needs fails a test.

Reasons are of four kinds: PyTorch's documentation leaves the result open, PyTorch is wrong (the reason says how that is
known), NumPy's arrays lack something, or ours does more.
"""

_ORDER_OF_EQUALS = "undefined: PyTorch's documentation leaves open which of equal elements is named"
_RANDOM = "undefined: the result depends on random numbers"
_DRAWN = (
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
    "nn.functional.multi_head_attention_forward", "svd_lowrank",
)  # fmt: skip
_LOST_IMAGINARY = "refused: the imaginary part would be lost; PyTorch warns"

EXEMPT: dict[tuple[str, str], str] = {
    **{(name, "value"): _ORDER_OF_EQUALS for name in ("argsort", "kthvalue", "mode", "sort", "topk")},
    **{(name, "value"): _RANDOM for name in _DRAWN},
    ("svd_lowrank", "second gradient"): _RANDOM,
    ("pca_lowrank", "second gradient"): _RANDOM,
    **{
        (name, "error"): _LOST_IMAGINARY
        for name in ("log_softmax.with_dtype", "nn.functional.softmin.with_dtype", "softmax.with_dtype")
    },
    ("masked.logaddexp", "second gradient"): "PyTorch is wrong: it subtracts infinities where one side is masked",
    ("masked.prod", "jvp"): "PyTorch is wrong: its tangent in float16 overflows to NaN, the product does not",
    ("masked.prod", "aliasing"): "PyTorch returns the number itself, which its documentation does not say",
    ("addbmm", "inplace"): "PyTorch lets addbmm_ change the shape of the tensor, which its documentation does not say",
    ("as_strided.partial_views", "error"): "an offset counts from the tensor's first element: arrays know no storage",
    ("as_strided.partial_views", "value"): "an offset counts from the tensor's first element: arrays know no storage",
    ("fft.ihfft2", "out"): "PyTorch is wrong: it leaves `out` as it was",
    ("fft.ihfftn", "out"): "PyTorch is wrong: it leaves `out` as it was",
    ("histogramdd", "error"): "undefined: edges that do not increase, which NumPy refuses",
    ("linalg.lstsq", "requires_grad"): "ours does more: singular values have a derivative",
    ("linalg.lstsq", "gradient"): "ours does more: singular values have a derivative",
    ("linalg.lstsq", "second gradient"): "ours does more: singular values have a derivative",
    ("linalg.lstsq", "jvp"): "ours does more: singular values have a derivative",
}

# Entries that have no counterpart here, and why.
ABSENT: dict[str, str] = {}
