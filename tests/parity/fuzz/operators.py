"""Calls of any registered operator that PyTorch has under the same name, based on the operator's samples."""

import re
from functools import cache, reduce
from typing import Any

import numpy as np
import torch

import retrograd as rg
from retrograd.core import registry
from retrograd.core.schema import REQUIRED
from retrograd.ops.family import Pointwise
from retrograd.testing import samples_of

from ...tables import merged
from .picker import Picker, Tensors, broadcasts

LARGEST = 60  # elements of a tensor that is written into a line
# PyTorch reads memory that is not the tensor's, where arguments do not fit each other.
CRASHES = {"linalg.ldl_solve": "pivots that no factorization returned"}
# Operators without a derivative in PyTorch, or with a derivative that is not connected: most get detached tensors.
NO_DERIVATIVE = re.compile(
    r"special\.(\w*bessel|airy|\w+_polynomial|zeta)|bincount|floor_divide|geqrf|heaviside|histc|histogram|unique|lu_unpack|ldl_factor"
)
# Operators whose results are determined by rounding where a matrix is singular, or has equal eigenvalues.
OF_MATRICES = re.compile(
    r"det$|inv|chol|eig|svd|svdvals|qr|geqrf|lu_factor|lu$|ldl|solve|matrix_rank|matrix_norm|nuclear_norm|householder|"
    r"orgqr|ormqr|lstsq|matrix_power|matrix_exp|cond$|polar"
)
# Operators whose derivative at NaN depends, in PyTorch, on whether numbers fill a vector register, or that give 0.
NOT_AT_NAN = re.compile(r"hardshrink|softshrink|hardsigmoid|hardswish|hardtanh|relu6|sign$|sgn")
UNCHANGED = ("sparse", "sorted")  # there are no sparse gradients here, and the order of unsorted results is open
WRITES = ("batch_norm", "instance_norm")  # to running statistics, which must not be operands too
# Outputs that are determined, of operators that have others, such as eigenvectors.
DETERMINED = {"linalg.eigh": 0, "linalg.svd": 1, "svd": 1, "linalg.inv_ex": 0}


@cache
def counterparts() -> dict[str, list[str]]:
    """Return the attribute paths, after `L.`, under which both libraries have an operator."""
    left_out = merged("parity.families", "NO_COUNTERPART")
    found = {}
    for name, op in registry.items():
        made = op.definition
        drawn = made.random or "dropout" in name or name == "rrelu"
        sampled = op.public_names and not drawn and getattr(made, "samples", None) is not None
        if sampled and name not in left_out | CRASHES:
            found[name] = [path for own in op.public_names for path in _paths(own)]
    return {name: paths for name, paths in found.items() if paths}


def _paths(name: str) -> list[str]:
    """Return the paths of a name in both libraries; other namespaces of PyTorch have older forms of its layers."""
    both = [p for p in (f"nn.functional.{name}", name, f"Tensor.{name}") if all(map(callable, _members(p)))]
    return both[:1] if both and both[0].startswith("nn.") else both


def _members(path: str) -> tuple[Any, Any]:
    return _member(torch, path), _member(rg, path)


def _member(root: Any, path: str) -> Any:
    return reduce(lambda found, name: getattr(found, name, None), path.split("."), root)


@cache
def _names() -> list[str]:
    return list(counterparts())


@cache
def _samples(name: str) -> list:
    """Return the samples of an operator that can be written into a line."""
    small = [s for s in samples_of(registry[name]) if all(_small(a) for a in s[0])]
    # PyTorch returns a tuple of one for a list of one, against its documentation.
    return [(args, params) for args, params in small if not (name.startswith("atleast") and len(args) == 1)]


def _small(argument: Any) -> bool:
    return not isinstance(argument, rg.Tensor) or argument.numel() <= LARGEST


def call(p: Picker, v: Tensors) -> str:
    """Return a call of a random operator: tensors of the program where they fit, else those of a sample."""
    name = p.pick(_names())
    path = p.pick(counterparts()[name])
    samples = _samples(name)
    if not samples:
        return "None"
    args, params = p.pick(samples)
    schema = registry[name].schema
    given = {key: _input(p, v, name, value, path) for key, value in schema.group(args).items()}
    given |= {key: _param(p, key, value) for key, value in params.items()}
    texts = [given[q.name] if q.default is REQUIRED and not q.keyword_only else f"{q.name}={given[q.name]}"
             for q in schema.parameters if q.default is REQUIRED or given[q.name] != repr(q.default)]  # fmt: skip
    return f"L.{path}({', '.join(texts)}){_output(p, name)}"


def _output(p: Picker, name: str) -> str:
    schema = registry[name].schema
    if name in DETERMINED:
        return f"[{DETERMINED[name]}]"
    if schema.outputs:
        return f"[{p.below(len(schema.outputs))}]"
    return "" if schema.returns == "Tensor" else "[0]"


def _input(p: Picker, v: Tensors, name: str, value: Any, path: str) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_input(p, v, name, t, path) for t in value)}]"
    if not isinstance(value, rg.Tensor):
        return repr(value)
    fitting = _fitting(v, name, value) if name not in WRITES and p.chance(0.8) else []
    if p.chance(0.95):
        fitting = [i for i in fitting if v[i].is_complex() == (value.dtype.kind == "c")]
    if not fitting:
        return literal(value.numpy())
    i = p.pick(fitting)
    detached = NO_DERIVATIVE.search(path) and v[i].requires_grad and p.chance(0.99)
    text = f"v[{i}].detach()" if detached else f"v[{i}].nan_to_num()" if NOT_AT_NAN.search(name) else f"v[{i}]"
    return _conditioned(text, value) if OF_MATRICES.search(name) and value.ndim > 1 else text


def _conditioned(text: str, value: rg.Tensor) -> str:
    """Return the source text of matrices of full rank, with distinct eigenvalues and singular values, made of others.

    Elements in (-1, 1) are added to a diagonal whose elements differ by more than their sums.
    """
    rows, columns = value.shape[-2:]
    spread = np.diag(2.0 * max(rows, columns) * np.arange(1, max(rows, columns) + 1))[:rows, :columns]
    return f"({text} / (1 + {text}.abs())).nan_to_num() + {literal(spread)}"


def _fitting(v: Tensors, name: str, value: rg.Tensor) -> list[int]:
    """Return the tensors of the program that can take the sample's position."""
    kind = value.dtype.kind
    if kind not in "fc":
        return [i for i, t in v.items() if kind == "b" and t.dtype == torch.bool and t.shape == value.shape]
    if counterparts()[name][0].startswith("nn.") or name.startswith("masked."):  # of one dtype, mostly
        v = {i: t for i, t in v.items() if str(t.dtype) == f"torch.{value.dtype}"}
    if issubclass(registry[name].definition, Pointwise):
        return [i for i, t in v.items() if broadcasts(t.shape, torch.Size(value.shape))]
    return [i for i, t in v.items() if t.shape == value.shape]


def literal(values: np.ndarray) -> str:
    """Return the source text of a tensor with these values, rounded."""
    rounded = np.round(values, 3) if values.dtype.kind in "fc" else values
    if values.size:
        return f"L.tensor({rounded.tolist()}, dtype=L.{values.dtype})"
    return f"L.zeros({values.shape}, dtype=L.{values.dtype})"


def _param(p: Picker, key: str, value: Any) -> str:
    if isinstance(value, np.dtype):
        return f"L.{value}"
    if isinstance(value, bool) and key not in UNCHANGED and p.chance(0.2):
        return repr(not value)
    if isinstance(value, float) and not np.isfinite(value):
        return f"float('{value}')"
    return repr(value)
