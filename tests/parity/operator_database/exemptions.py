"""Differences from PyTorch, and why: (entry, aspect) -> reason.  An exemption that is not needed fails a test.

Reasons are of four kinds: PyTorch's documentation leaves the result open, PyTorch is wrong (the reason says how that is
known), NumPy arrays lack something, or retrograd supports more.
"""

_RANDOM = "undefined: the result depends on random numbers"
_LOST_IMAGINARY = "ours does more: it refuses to lose the imaginary part, of which PyTorch warns"
_TRACKED = "ours does more: results that share memory are views, so that writes to them give correct gradients"
_LAZY = "NumPy has no lazy conjugation: the conjugate of complex numbers is a copy"
_STORAGE = "NumPy's arrays know no storage: an offset counts from the tensor's first element"
_DROPPED = "PyTorch is wrong: computing in chunks drops tangents in half precision, which its documentation excludes"
_RAGGED = "undefined: PyTorch's documentation excludes sizes that depend on values from vmap"

EXEMPT: dict[tuple[str, str], str] = {
    **{(name, "aliasing"): _LAZY for name in ("H", "conj", "mH")},
    **{(name, "aliasing"): _TRACKED for name in ("resize_", "unsafe_chunk", "unsafe_split")},
    **{(name, "vmap"): _RAGGED for name in ("argwhere", "repeat_interleave")},
    ("svd_lowrank", "value"): _RANDOM,
    ("svd_lowrank", "second gradient"): _RANDOM,
    ("pca_lowrank", "second gradient"): _RANDOM,
    **{
        (name, "error"): _LOST_IMAGINARY
        for name in ("log_softmax.with_dtype", "nn.functional.softmin.with_dtype", "softmax.with_dtype")
    },
    **{(f"nn.functional.linear_cross_entropy.{name}", "jvp"): _DROPPED for name in ("chunked", "chunked_none")},
    ("linalg.norm.subgradients_at_zero", "second gradient"): "ours does more: 0 where PyTorch gives NaN",
    ("masked.logaddexp", "second gradient"): "PyTorch is wrong: it subtracts infinities where one side is masked",
    ("masked.prod", "jvp"): "PyTorch is wrong: its tangent in half precision overflows to NaN, the product does not",
    ("clamp", "jvp"): "PyTorch is wrong: a tangent at the bound itself is 0, its gradient there is not",
    ("masked.prod", "aliasing"): "PyTorch returns the number itself, which its documentation does not say",
    ("addbmm", "inplace"): "PyTorch lets addbmm_ change the shape of the tensor, which its documentation does not say",
    ("as_strided.partial_views", "error"): _STORAGE,
    ("fft.ihfft2", "out"): "PyTorch is wrong: it leaves `out` as it was",
    ("fft.ihfftn", "out"): "PyTorch is wrong: it leaves `out` as it was",
    ("histogramdd", "error"): "undefined: edges that do not increase, which NumPy refuses",
    ("linalg.lstsq", "requires_grad"): "ours does more: singular values have a derivative",
    ("linalg.lstsq", "gradient"): "ours does more: singular values have a derivative",
    ("linalg.lstsq", "second gradient"): "ours does more: singular values have a derivative",
    ("linalg.lstsq", "jvp"): "ours does more: singular values have a derivative",
}

_INTERNAL = "internal to PyTorch: no function of its documentation"
_SPARSE = "of sparse tensors, which tests/parity/test_sparse_parity.py compares"
_FORMAT = "of a format that NumPy lacks"
_CUDA = "compiles a kernel for CUDA"

# Entries that have no counterpart here, and why.
ABSENT: dict[str, str] = {
    **dict.fromkeys(
        (
            "_batch_norm_with_update", "_chunk_cat", "_native_batch_norm_legit", "_segment_reduce.lengths",
            "_segment_reduce.offsets", "_softmax_backward_data", "_unsafe_masked_index",
            "_unsafe_masked_index_put_accumulate", "_upsample_bilinear2d_aa", "max_pool2d_with_indices_backward",
            "native_dropout_backward", "torch.ops.aten._efficient_attention_forward",
            "torch.ops.aten._flash_attention_forward", "torch.ops.aten._safe_softmax.default",
        ),
        _INTERNAL,
    ),
    **dict.fromkeys(("sparse.mm.reduce", "sparse.sampled_addmm", "to_sparse"), _SPARSE),
    **dict.fromkeys(("chalf", "torch._scaled_mm", "torch._scaled_mm_v2"), _FORMAT),
    **dict.fromkeys(
        (
            "jiterator_2inputs_2outputs", "jiterator_4inputs_with_extra_args", "jiterator_binary",
            "jiterator_binary_return_by_ref", "jiterator_unary",
        ),
        _CUDA,
    ),
    "lu": "deprecated in PyTorch: linalg.lu_factor and linalg.lu replace it",
}  # fmt: skip
