"""How tensors are printed."""

import math
from textwrap import indent

from retrograd import backend
from retrograd.backend.array_text import PrintOptions
from retrograd.core import Tensor
from retrograd.core.views import synced_grad_fn
from retrograd.foundation.lazy_imports import add_attribute
from retrograd.ops.functions import function
from retrograd.ops.methods import tangents_in_dual_levels

_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = PrintOptions()  # global, as in PyTorch


@function()
def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Set how tensors are printed; options that are not given stay unchanged, but `sci_mode` becomes None.

    Numbers have `precision` digits after the point (4 at the start).  Tensors with more than `threshold` elements
    (1000) are summarized with `edgeitems` (3) at each end of a dimension.  Lines have at most `linewidth` characters
    (80).  `sci_mode` forces or disables scientific notation; None uses it if the largest magnitude is above 1e8 or 1000
    times the smallest, or if the smallest is below 1e-4.  `profile` sets all others first: "default", "short" (2
    digits, 2 edge items), "full" (no summary).

    ValueError: another profile.

    >>> import retrograd as rg
    >>> rg.set_printoptions(precision=2)
    >>> rg.tensor([1 / 3])
    tensor([0.33])
    >>> rg.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile must be one of {list(_PROFILES)}, got {profile!r}")
        vars(_options).update(vars(_PROFILES[profile]))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    vars(_options).update({name: value for name, value in given.items() if value is not None}, sci_mode=sci_mode)


def _format_tensor(x) -> str:
    notes = [f"tangent={tangent!r}" for tangent in tangents_in_dual_levels(x)]
    made_by = synced_grad_fn(x)  # before the value is read: a view is regenerated after a write to its base
    if x.level is not None and x.level.wrapper:
        return _format_wrapped(x)
    if made_by is not None:
        notes.insert(0, f"grad_fn=<{made_by.name()}>")
    elif x.requires_grad:
        notes.insert(0, "requires_grad=True")
    if x.level is not None:
        return ", ".join([f"tensor({x.aval}, {type(x.level).__name__}", *notes]) + ")"
    part_notes = ["requires_grad=True"] if x.requires_grad else []
    return backend.text(x.value, _options, name=_printed_name(x), notes=notes, part_notes=part_notes)


def _printed_name(x):
    """Return the name of a tensor's class in its text; "" for that of its kind of array."""
    kind = type(x)
    return "" if kind is Tensor else vars(kind).get("_printed_name", kind.__name__)


def _format_wrapped(x) -> str:
    """Return a tensor of a transform as PyTorch shows it: with its level's number, and its value one level below."""
    value, batch_dim = x.level.value_as_given(x)
    if x.level.wrapper == "BatchedTensor" and batch_dim is None:
        return repr(value)
    number, level = 1, x.level.parent
    while level is not None:
        number, level = number + 1, level.parent
    dim = "" if batch_dim is None else f", bdim={batch_dim}"
    return f"{x.level.wrapper}(lvl={number}{dim}, value=\n{indent(repr(value), '    ')}\n)"


add_attribute(Tensor, "__repr__", _format_tensor)
