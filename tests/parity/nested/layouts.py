"""Layouts of nested tensors: what was asked for, what results have, and what depends on it."""

import copy
import io
import pickle
from functools import partial

from .common import rows, x

NAMES = ("strided", "jagged")


def nested_of(m, layout, *sizes, **kwargs):
    """Return a nested tensor of components of these sizes in a layout."""
    parts = [x(m, *size, seed=i) for i, size in enumerate(sizes or ((2, 3), (4, 3)))]
    return m.nested.nested_tensor(parts, layout=getattr(m, layout), **kwargs)


def layout_of(result):
    return str(result.layout).rpartition(".")[2]


def stored(m, t):
    file = io.BytesIO()
    m.save(t, file)
    file.seek(0)
    return m.load(file)


RESULTS = {
    "made": lambda m, t: t,
    "clone": lambda m, t: t.clone(),
    "detach": lambda m, t: t.detach(),
    "contiguous": lambda m, t: t.contiguous(),
    "* 2": lambda m, t: t * 2,
    "+ itself": lambda m, t: t + t,
    "neg": lambda m, t: -t,
    "relu": lambda m, t: t.relu(),
    "transpose": lambda m, t: t.transpose(1, 2),
    "softmax": lambda m, t: t.softmax(-1),
    "dtype": lambda m, t: t.to(m.float32),
    "zeros_like": lambda m, t: m.zeros_like(t),
    "ones_like": lambda m, t: m.ones_like(t),
    "empty_like": lambda m, t: m.empty_like(t),
    "randn_like": lambda m, t: m.randn_like(t),
    "zero_": lambda m, t: t.zero_(),
    "fill_": lambda m, t: t.fill_(2.0),
    "mul_": lambda m, t: t.mul_(2.0),
    "copy_": lambda m, t: m.zeros_like(t).copy_(t),
    "pickle": lambda m, t: pickle.loads(pickle.dumps(t)),
    "save": stored,
    "as_nested_tensor": lambda m, t: m.nested.as_nested_tensor(t, layout=t.layout),
    "requires_grad_": lambda m, t: t.requires_grad_(),
}
VALUES = (
    "made",
    "* 2",
    "+ itself",
    "neg",
    "relu",
    "dtype",
    "zeros_like",
    "ones_like",
    "fill_",
    "mul_",
    "copy_",
    "save",
)
SIZES = {
    "size(0)": lambda m, t: t.size(0),
    "size(-1)": lambda m, t: t.size(-1),
    "dim": lambda m, t: t.dim(),
    "is_leaf": lambda m, t: t.requires_grad_().is_leaf,
    "chunk of the last": lambda m, t: [part.numel() for part in t.chunk(3, -1)],
    "unbind of the components": lambda m, t: [tuple(part.shape) for part in t.unbind()],
    "index": lambda m, t: t[-1],
    "padded": lambda m, t: t.to_padded_tensor(-1.0),
    "padded with more": lambda m, t: m.nested.to_padded_tensor(t, 0.5, (2, 5, 3)),
    "is_contiguous": lambda m, t: [t.is_contiguous(), t.transpose(1, 2).is_contiguous()],
}


def _of_made(function, layout, m):
    return function(m, nested_of(m, layout))


def _layout_of_made(function, layout, m):
    return layout_of(function(m, nested_of(m, layout)))


def of(layout):
    """Return the cases of one layout."""
    found = {f"layout of {name}": partial(_layout_of_made, f, layout) for name, f in RESULTS.items()}
    found |= {f"values of {name}": partial(_of_made, RESULTS[name], layout) for name in VALUES}
    found |= {name: partial(_of_made, f, layout) for name, f in SIZES.items()}
    found["equal sizes"] = lambda m: layout_of(nested_of(m, layout, (2, 3), (2, 3)))
    found["values"] = lambda m: nested_of(m, layout, (2,), (3,)).values()
    return found


def without(m):
    return m.nested.nested_tensor([])


LENGTHS = {
    "no components": lambda m: [without(m).dim(), without(m).size(0), without(m).numel(), without(m).is_nested],
    "no components, padded": lambda m: tuple(m.nested.to_padded_tensor(without(m), 0.0).shape),
    "no components, unbound": lambda m: len(without(m).unbind()),
    "an equal size of a strided one": lambda m: nested_of(m, "strided", (2, 3), (2, 3)).size(1),
    "the default": lambda m: [
        layout_of(m.nested.nested_tensor(rows(m))),
        layout_of(m.nested.as_nested_tensor(rows(m))),
    ],
    "from_jagged": lambda m: layout_of(m.nested.nested_tensor_from_jagged(x(m, 5), m.tensor([0, 2, 5]))),
    "masked_select": lambda m: layout_of(m.nested.masked_select(x(m, 2, 3), x(m, 2, 3) > 0)),
    "narrow, jagged": lambda m: layout_of(m.nested.narrow(x(m, 3, 4), 1, 0, 2, layout=m.jagged)),
    "bounds": lambda m: [int(nested_of(m, "jagged")._min_seqlen), int(nested_of(m, "jagged")._max_seqlen)],
    "bounds by methods": lambda m: [nested_of(m, "jagged")._get_min_seqlen(), nested_of(m, "jagged")._get_max_seqlen()],
    "bounds with holes": lambda m: m.nested.nested_tensor_from_jagged(
        x(m, 6), m.tensor([0, 3, 6]), lengths=m.tensor([1, 2])
    )._get_max_seqlen(),
    "no bounds of a strided one": lambda m: hasattr(nested_of(m, "strided"), "_max_seqlen"),
    "ragged index": lambda m: [nested_of(m, "jagged")._ragged_idx, nested_of(m, "jagged").transpose(1, 2)._ragged_idx],
    "deepcopy": lambda m: layout_of(copy.deepcopy(nested_of(m, "jagged"))),
}

# Programs that fail, and words of both messages.
ERRORS = {
    "size of a ragged dimension": (
        lambda m: nested_of(m, "strided").size(1),
        "Given dimension 1 is irregular and does not",
    ),
    "size from behind": (
        lambda m: nested_of(m, "strided").size(-2),
        "Given dimension -2 is irregular and does not have",
    ),
    "size beyond, strided": (
        lambda m: nested_of(m, "strided").size(3),
        "expected to be in range of [-3, 2], but got 3",
    ),
    "size beyond, jagged": (
        lambda m: nested_of(m, "jagged").size(-4),
        "expected to be in range of [-3, 2], but got -4",
    ),
    "size beyond, dense": (lambda m: x(m, 2).size(1), "expected to be in range of [-1, 0], but got 1"),
    "two ragged dimensions": (
        lambda m: nested_of(m, "jagged", (2, 3), (4, 5)),
        "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout "
        "only allows for a single ragged dimension",
    ),
    "no dimensions": (
        lambda m: nested_of(m, "jagged", ()),
        "Cannot construct a nested tensor from a list of zero-dim tensors",
    ),
    "no components": (
        lambda m: m.nested.nested_tensor([], layout=m.jagged),
        "Cannot construct a nested tensor from an empty tensor list",
    ),
    "dtypes": (
        lambda m: m.nested.nested_tensor([x(m, 2), x(m, 2).to(m.float32)], layout=m.jagged),
        "When constructing a nested tensor, all tensors in list must have the same dtype",
    ),
    "neither offsets nor lengths": (
        lambda m: m.nested.nested_tensor_from_jagged(x(m, 5)),
        "nested_tensor_from_jagged(): At least one of offsets or lengths is required.",
    ),
}
