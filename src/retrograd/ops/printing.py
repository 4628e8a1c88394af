"""How tensors are printed."""

from textwrap import indent
from typing import Any

from retrograd import backend
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.ops.functions import function
from retrograd.ops.methods import tangents_in_dual_levels

# Global, as in PyTorch; None means NumPy's default: 8 digits, 75 columns.
_UNSET: dict[str, Any] = {"precision": None, "threshold": None, "edgeitems": None, "linewidth": None, "sci_mode": None}
_PROFILES = {
    "default": _UNSET,
    "short": {**_UNSET, "precision": 2, "edgeitems": 2},
    "full": {**_UNSET, "threshold": 2**62},
}
_options = dict(_UNSET)


@function()
def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Set how tensors are printed; options that are not given stay unchanged.

    `precision` is the number of digits.  Tensors with more than `threshold` elements are summarized with `edgeitems` at
    each end.  Lines have at most `linewidth` characters.  `sci_mode` forces or disables scientific notation.  `profile`
    sets all options: "default", "short", "full".

    >>> import retrograd as rg
    >>> rg.set_printoptions(precision=2)
    >>> rg.tensor([1 / 3])
    tensor([0.33])
    >>> rg.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile must be one of {list(_PROFILES)}, got {profile!r}")
        _options.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({name: value for name, value in {**given, "sci_mode": sci_mode}.items() if value is not None})


def _array_options():
    """The settings as keywords of NumPy's array2string."""
    settings = {**_options, "max_line_width": _options["linewidth"], "suppress_small": _options["sci_mode"] is False}
    if _options["sci_mode"]:
        digits = 4 if _options["precision"] is None else _options["precision"]
        settings["formatter"] = {"float_kind": lambda v: f"{v:.{digits}e}"}
    return {name: value for name, value in settings.items() if name not in ("linewidth", "sci_mode")}


def _format_tensor(x) -> str:
    suffix = f", size={x.shape}" if 0 in x.shape and x.ndim > 1 else ""
    suffix += "" if _dtype_is_obvious(x.dtype) else f", dtype={x.dtype}"
    if x.grad_fn is not None:
        suffix += f", grad_fn={x.grad_fn!r}"
    elif x.requires_grad:
        suffix += ", requires_grad=True"
    suffix += "".join(f", tangent={tangent!r}" for tangent in tangents_in_dual_levels(x))
    if x.level is not None and x.level.wrapper:
        return _format_wrapped(x)
    if x.level is not None:
        return f"tensor({x.aval}, {type(x.level).__name__}{suffix})"
    return f"{backend.text(x.value, **_array_options())}{suffix})"


def _format_wrapped(x) -> str:
    """Return a tensor of a transform as PyTorch shows it: with its level's number, and its value one level below."""
    batched = x.value.ndim > x.ndim
    if x.level.wrapper == "BatchedTensor" and not batched:
        return repr(x.value)
    number, level = 1, x.level.parent
    while level is not None:
        number, level = number + 1, level.parent
    dim = ", bdim=0" if batched else ""
    return f"{x.level.wrapper}(lvl={number}{dim}, value=\n{indent(repr(x.value), '    ')}\n)"


Tensor.__repr__ = _format_tensor


def _dtype_is_obvious(dtype):
    default = dtypes.get_default_dtype()
    return dtype in (default, dtypes.complex_of(default), dtypes.int64, dtypes.bool_)
