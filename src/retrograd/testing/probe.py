"""A call of an operator as a map between tensors, and variants with other values, shapes, dtypes and strides."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import optree

from retrograd.core import Operator, Tensor
from retrograd.library import CustomOperator
from retrograd.ops.as_tensor import as_tensor
from retrograd.testing.calculus import directions, is_float, pull, replace_floats, seeded

WIDER = {"float16": "float64", "float32": "float64", "complex64": "complex128"}
OTHER = {**WIDER, "float64": "float32", "complex128": "complex64", "int64": "int32", "int32": "int64"}


class Outcome(NamedTuple):
    """The result of a call: its tensors, its other leaves, and the new values of mutated arguments."""

    tensors: tuple[Tensor, ...]
    non_tensors: tuple
    mutated: tuple[Tensor, ...]


@dataclass(frozen=True)
class Probe:
    """An operator with flat inputs, constant outside transforms, and params.

    >>> import retrograd as rg
    >>> probe = Probe.from_call(rg.mul, (rg.ones(2), rg.ones(2)), {})
    >>> probe.names, probe(rg.ones(2), 3 * rg.ones(2))
    (['a', 'b'], (tensor([3., 3.]),))
    """

    op: Operator
    inputs: tuple
    params: dict
    argnums: tuple[int, ...]  # indices of the tensors to differentiate by
    by_requires_grad: (
        bool  # whether `argnums` are the tensors that require grad; if none does, they are all floating ones
    )

    @classmethod
    def from_call(cls, op: Operator, args: Sequence, kwargs: dict) -> "Probe":
        """Return a probe for these arguments; differentiate by those that require grad, else by all floating ones."""
        inputs, params = op.schema.bind(tuple(args), kwargs)
        tensors = [a for a in inputs if isinstance(a, Tensor)]
        floating = [i for i, t in enumerate(tensors) if t.dtype.kind in "fc"]
        chosen = [i for i in floating if tensors[i].requires_grad]
        fixed = tuple([a.detach().clone() if isinstance(a, Tensor) else a for a in inputs])
        return cls(op, fixed, params, tuple(chosen or floating), bool(chosen))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Return the tensors among the inputs."""
        return tuple([a for a in self.inputs if isinstance(a, Tensor)])

    @property
    def names(self) -> list[str]:
        """Return the names of the tensors: `x`, or `ys[0]` in a list."""
        found, numbers = {}, self.op.schema.named(range(len(self.inputs)), self.params)
        for p in self.op.schema.inputs:
            value = numbers[p.name]
            listed = isinstance(value, (list, tuple))
            found.update({n: f"{p.name}[{i}]" for i, n in enumerate(value)} if listed else {value: p.name})
        return [found[n] for n, a in enumerate(self.inputs) if isinstance(a, Tensor)]

    @property
    def custom(self) -> CustomOperator | None:
        """Return the operator, if it is a custom one."""
        return self.op if isinstance(self.op, CustomOperator) else None

    @property
    def mutated(self) -> list[int]:
        """Return the indices of the tensors that the schema marks as written."""
        marked = getattr(self.op.schema, "mutated", ())
        return [i for i, name in enumerate(self.names) if name.partition("[")[0] in marked]

    def flat(self, tensors: Sequence[Tensor]) -> tuple:
        """Return the inputs with the tensors replaced by these."""
        rest = iter(tensors)
        return tuple([next(rest) if isinstance(a, Tensor) else a for a in self.inputs])

    def run(self, tensors: Sequence[Tensor], *, copy: bool = True) -> Outcome:
        """Call the operator, as users do, on copies of these tensors; every call draws the same random values."""
        given = [t.clone() for t in tensors] if copy else list(tensors)
        with seeded():
            result = self.op(**self.op.schema.named(self.flat(given), self.params))
        leaves: list = optree.tree_leaves(result, none_is_leaf=True)
        written = tuple([given[i] for i in self.mutated])  # some operators return them too
        found = tuple([leaf for leaf in leaves if isinstance(leaf, Tensor) and not any(leaf is t for t in written)])
        others = tuple([leaf for leaf in leaves if not isinstance(leaf, Tensor)])
        return Outcome(found, others, written)

    def __call__(self, *tensors: Tensor, copy: bool = True) -> tuple[Tensor, ...]:
        """Return all result tensors: those returned, and the written arguments."""
        outcome = self.run(tensors, copy=copy)
        return outcome.tensors + outcome.mutated

    def floating_outputs(self) -> list[int]:
        """Return the indices of the result tensors that are floating or complex."""
        return [i for i, out in enumerate(self._observe(self(*self.tensors))) if out.dtype.kind in "fc"]

    def float_map(self, outputs: list[int] | None = None, *, copy: bool = True) -> tuple[Callable, tuple[Tensor, ...]]:
        """Return the call as a map from the differentiated tensors to the floating results, and these tensors.

        As in the laws, built-in operators may define the domain of inputs, and the determined part of outputs.
        """
        numbers = self.floating_outputs() if outputs is None else outputs

        def part(*xs: Tensor) -> tuple[Tensor, ...]:
            full = list(self.tensors)
            for i, x in zip(self.argnums, xs, strict=True):
                full[i] = x
            outs = self._observe(self(*self._constrain(tuple(full)), copy=copy))
            return tuple([outs[i] for i in numbers])

        return part, tuple([self.tensors[i] for i in self.argnums])

    def _constrain(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        constrain = getattr(self.op.definition, "constrain", lambda *xs: xs)
        return replace_floats(tensors, constrain(*filter(is_float, tensors)))

    def _observe(self, outs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(getattr(self.op.definition, "observe", lambda *outs: outs)(*outs))

    def has_gradient(self) -> bool:
        """Whether gradients flow without an error: one check alone tests whether they should."""
        f, xs = self.float_map()
        try:
            return not self.mutated and any(g is not None for g in pull(f, xs, directions(f(*xs), 1)))
        except Exception:
            return False

    # ----------------------------------------------------------------------------------------------- other calls

    def map_arrays(self, change: Callable[[np.ndarray], np.ndarray]) -> "Probe":
        """Return the same call with a function applied to each tensor's array."""
        return self.with_tensors([as_tensor(np.asarray(change(t.value))) for t in self.tensors])

    def with_tensors(self, tensors: Sequence[Tensor]) -> "Probe":
        """Return the same call with these tensors."""
        return replace(self, inputs=self.flat(tensors))

    def accepts(self, *, copy: bool = True) -> bool:
        """Whether the operator accepts these inputs."""
        try:
            self(*self.tensors, copy=copy)
        except Exception:  # kernels raise various errors for invalid inputs
            return False
        return True

    def gives_finite(self) -> bool:
        """Whether the operator accepts these inputs, and gives finite values."""
        return self.accepts() and all(np.isfinite(out.value).all() for out in self(*self.tensors) if is_float(out))

    def perturb(self) -> list["Probe"]:
        """Return the same call with other values, of the same shapes and dtypes, in a similar range."""
        rng = np.random.default_rng(0)
        found = [self.map_arrays(lambda a: np.flip(a).copy()), self.map_arrays(lambda a: _perturb_values(a, rng))]
        return [probe for probe in found if probe.gives_finite()]

    def variants(self) -> list["Probe"]:
        """Return the calls of `perturb`, and one with negated floating values, if the operator accepts it."""
        negated = self.map_arrays(lambda a: -a if a.dtype.kind in "fc" else a.copy())
        return [*self.perturb(), *([negated] if negated.gives_finite() else [])]

    def with_other_sizes(self) -> Iterator["Probe"]:
        """Yield calls with other sizes: equal ones stay equal and 1 stays 1; values are repeated."""
        sizes = sorted({n for t in self.tensors for n in t.shape if n > 1})
        news = [{n: n + 1 for n in sizes}, {n: 2 * n for n in sizes}, {n: n + 1 + i for i, n in enumerate(sizes)}]
        for new in [*news, *[{n: 0} for n in sizes], *([] if sizes else [{1: 2}])]:
            yield self.map_arrays(lambda a, new=new: _tile(a, [new.get(n, n) for n in a.shape]))  # type: ignore[misc]

    def with_other_dtypes(self) -> "Probe":
        """Return the call with floats and integers of the other width."""
        return self.map_arrays(lambda a: a.astype(OTHER.get(str(a.dtype), a.dtype)))

    def in_double_precision(self) -> "Probe":
        """Return the call in double precision, or unchanged, if the operator does not support that."""
        wide = self.map_arrays(lambda a: a.astype(WIDER.get(str(a.dtype), a.dtype)))
        return wide if wide.gives_finite() and not any(str(out.dtype) in WIDER for out in wide(*wide.tensors)) else self

    def with_other_layouts(self) -> Iterator[tuple["Probe", str]]:
        """Yield the same call with other memory layouts of the inputs, and their description."""
        for layout, what in LAYOUTS.items():
            yield self.map_arrays(layout), f"inputs with {what}"
        for i, name in enumerate(self.names if len(self.names) > 1 else ()):
            one = [as_tensor(_with_gaps(t.value)) if i == j else t.detach().clone() for j, t in enumerate(self.tensors)]
            yield self.with_tensors(one), f"gaps between the entries of {name!r}"


def _with_gaps(a: np.ndarray) -> np.ndarray:
    return np.stack([a, np.zeros_like(a)], axis=-1)[..., 0]


def _backwards(a: np.ndarray) -> np.ndarray:
    return np.flip(np.flip(a).copy())


def _columns_first(a: np.ndarray) -> np.ndarray:
    return np.array(a, order="F")


LAYOUTS = {
    _with_gaps: "gaps between the entries",
    _backwards: "negative strides",
    _columns_first: "columns before rows",
}


def _perturb_values(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return floating values near the given ones, of the same sign; zeros become small positive ones."""
    if a.dtype.kind not in "fc":
        return a
    return np.asarray(np.where(a == 0, rng.uniform(0.05, 0.1, a.shape), a * rng.uniform(0.8, 1.2, a.shape)), a.dtype)


def _tile(a: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    return np.resize(a, shape) if a.size or not math.prod(shape) else np.zeros(shape, a.dtype)
