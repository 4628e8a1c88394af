"""The mapping between a traced function's arguments and result and a graph's flat inputs and output."""

import inspect
from collections.abc import Callable
from copy import copy
from itertools import islice
from typing import Any, NamedTuple

import optree

from retrograd import backend
from retrograd.core import Aval, Tensor
from retrograd.core.aval import SymbolicSize, describe_difference
from retrograd.core.tensor import unwrap_all
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx.dataclass_pytrees import check_no_hidden_tensors, with_fields
from retrograd.fx.traced_writes import USER_INPUT, Mutation, write_back


class Input(NamedTuple):
    """A tensor among the arguments: the name of its placeholder, and its shape and dtype."""

    name: str
    aval: Aval


class Constant(NamedTuple):
    """An argument that is no tensor; its value is part of the graph."""

    name: str
    value: Any


class Signature:
    """Flattens arguments to tensors, and rebuilds results.

    Arguments are pytrees, as in optree: nested tuples, lists, dicts, and types registered there.  Their
    structure, the shapes and dtypes of tensors, and the values of everything else belong to the graph.  Ragged sizes
    may differ from the example's, unless the graph depends on them (`knows_sizes`).

    `mutations` lists the targets that the program writes to.  The graph then returns a tuple: the new value of each
    target, followed by the leaves of the result.  `finish` writes the values.

    >>> import retrograd as rg
    >>> signature = Signature(lambda x, scale=2.0: x)
    >>> [x] = signature.learn((rg.ones(3),), {})
    >>> signature.flatten((rg.zeros(3),), {"scale": 2.0})
    [tensor([0., 0., 0.])]
    >>> signature.flatten((rg.zeros(3), 3.0), {})
    Traceback (most recent call last):
    ValueError: scale: traced with 2.0, got 3.0; trace again for others
    """

    def __init__(self, function: Callable) -> None:
        self.parameters = _parameters(function)
        self._specs: dict[str, Any] = {}  # the tree of each argument
        self._leaves: list[Input | Constant] = []
        self._result: Any = None
        self._returned_targets: dict[int, int] = {}  # index of a result's leaf -> the mutation whose target it is
        self.mutations: list[Mutation] = []
        self.knows_sizes = True

    @property
    def inputs(self) -> list[Input]:
        """The tensors among the arguments, one for each placeholder."""
        return [leaf for leaf in self._leaves if isinstance(leaf, Input)]

    def learn(self, args: tuple, kwargs: dict[str, Any]) -> list[Tensor]:
        """Set the example that all later arguments must match; return its tensors."""
        found = []
        for name, value in self._bind(args, kwargs).arguments.items():
            paths, leaves, self._specs[name] = optree.tree_flatten_with_path(with_fields(value))
            for path, leaf in zip(paths, leaves, strict=True):
                self._leaves.append(_input_or_constant("_".join(map(str, (name, *path))), leaf))
                found.append(leaf)
        return [leaf for leaf in found if isinstance(leaf, Tensor)]

    def rebuild(self, tensors: list[Tensor]) -> inspect.BoundArguments:
        """Return the arguments with these tensors instead of the example's."""
        rest = iter(tensors)
        leaves = iter([next(rest) if isinstance(leaf, Input) else leaf.value for leaf in self._leaves])
        arguments = {
            name: optree.tree_unflatten(spec, list(islice(leaves, spec.num_leaves)))
            for name, spec in self._specs.items()
        }
        return inspect.BoundArguments(self.parameters, arguments)

    def flatten(self, args: tuple, kwargs: dict[str, Any]) -> list[Tensor]:
        """Return the tensors of arguments; a ValueError names the first that does not match the example."""
        found = []
        for name, value in self._bind(args, kwargs).arguments.items():
            leaves, spec = optree.tree_flatten(with_fields(value))
            if spec != self._specs[name]:
                raise ValueError(
                    f"{name}: traced with the structure {_outline(self._specs[name])}, got {_outline(spec)}; * is a "
                    "tensor or another value"
                )
            found += leaves
        for leaf, expected in zip(found, self._leaves, strict=True):
            self.check(leaf, expected)
        tensors = [leaf for leaf, expected in zip(found, self._leaves, strict=True) if isinstance(expected, Input)]
        self.check_no_shared_memory(tensors)
        return tensors

    def check_no_shared_memory(self, tensors: list[Tensor]) -> None:
        """Raise a ValueError if an argument that is written to shares memory with another."""
        written = {m.target for m in self.mutations if m.kind == USER_INPUT}
        pairs = list(zip(self.inputs, tensors, strict=True)) if written else []
        for expected, x in pairs:
            for other, y in pairs:
                if (
                    expected.name in written
                    and other is not expected
                    and backend.shares_memory(unwrap_all(x), unwrap_all(y))
                ):
                    raise ValueError(
                        f"{expected.name} is written to, and shares memory with {other.name}; the graph assumes "
                        f"separate tensors, so clone one of them"
                    )

    def check(self, leaf: Any, expected: Input | Constant) -> None:
        """Raise a ValueError if a leaf of the arguments does not match the example's."""
        _check(leaf, expected, self.knows_sizes)

    def learn_result(self, result: Any) -> list:
        """Set the structure of all results; return the leaves of this one."""
        leaves, self._result = optree.tree_flatten(with_fields(result))
        for leaf in leaves:
            check_no_hidden_tensors(leaf)
        return leaves

    def learn_mutations(self, mutations: list[Mutation], same: dict[int, int]) -> None:
        """Set the targets of writes; `same` maps a leaf of the result that is a target to the index of its write."""
        self.mutations, self._returned_targets = mutations, same

    def with_mutations(self, *kinds: str) -> "Signature":
        """Return the signature with mutations of these kinds only, for a graph that performs the others itself."""
        indices = [i for i, mutation in enumerate(self.mutations) if mutation.kind in kinds]
        reduced = copy(self)
        same = {leaf: indices.index(i) for leaf, i in self._returned_targets.items() if i in indices}
        reduced.learn_mutations([self.mutations[i] for i in indices], same)
        return reduced

    @property
    def single(self) -> bool:
        """True if the result is one leaf, which the graph returns directly and not in a tuple."""
        return not self.mutations and self._result.is_leaf()

    def restore(self, flat: Any) -> Any:
        """Return a result of the learnt structure from the graph's, if the graph writes to nothing."""
        if self.mutations:
            written = ", ".join(m.target for m in self.mutations)
            raise NotImplementedError(f"this graph writes to {written}, which only running its GraphModule does")
        return flat if self.single else optree.tree_unflatten(self._result, flat)

    def finish(self, flat: Any, inputs: list[Tensor], module: Any) -> Any:
        """Write the graph's mutations to the module and the inputs; return the result."""
        if not self.mutations:
            return self.restore(flat)
        count = len(self.mutations)
        names = [expected.name for expected in self.inputs]
        targets = write_back(self.mutations, flat[:count], dict(zip(names, inputs, strict=True)), module)
        leaves = [
            targets[self._returned_targets[i]] if i in self._returned_targets else leaf
            for i, leaf in enumerate(flat[count:])
        ]
        return optree.tree_unflatten(self._result, leaves)

    def _bind(self, args: tuple, kwargs: dict[str, Any]) -> inspect.BoundArguments:
        bound = self.parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound


def _parameters(function: Callable) -> inspect.Signature:
    """Return the function's parameters without annotations, which may not pickle."""
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:  # some builtins have no signature
        return inspect.signature(lambda *args, **kwargs: None)
    return inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in found])


def _input_or_constant(name: str, leaf: Any) -> Input | Constant:
    if isinstance(leaf, Tensor):
        return Input(name, leaf.aval)
    if _is_array(leaf):
        raise TypeError(f"trace: {name} is an array, {type(leaf).__name__}; pass a tensor, see rg.as_tensor")
    return Constant(name, leaf)


def _outline(spec: Any) -> str:
    """Return the text of a structure without the name of its class: `*` is a leaf."""
    return str(spec).removeprefix("PyTreeSpec(").removesuffix(")")


def _is_array(leaf: Any) -> bool:
    is_array = hasattr(leaf, "__array__") and not isinstance(leaf, Tensor)
    return is_array and not isinstance(leaf, (bool, int, float, complex))


def _check(leaf: Any, expected: Input | Constant, knows_sizes: bool) -> None:
    if isinstance(expected, Input):
        if not isinstance(leaf, Tensor) or not (leaf.aval == expected.aval or _same_type(leaf.aval, expected.aval)):
            if _is_array(leaf):
                raise TypeError(f"{expected.name} is an array, {type(leaf).__name__}; pass a tensor, see rg.as_tensor")
            got = leaf.aval if isinstance(leaf, Tensor) else repr(leaf)
            raise ValueError(f"{expected.name}: traced with {expected.aval}, got {got}; trace again for others")
        if knows_sizes and leaf.aval != expected.aval:
            raise ValueError(
                f"{expected.name}: traced with {expected.aval}, got "
                f"another{describe_difference(expected.aval.shape, leaf.shape)}; the graph depends on these sizes, so "
                "trace again for others"
            )
    elif leaf is not expected.value and (type(leaf) is not type(expected.value) or leaf != expected.value):
        raise ValueError(
            f"{expected.name}: traced with {expected.value!r}, got {describe(leaf)}; trace again for others"
        )


def _same_type(a: Aval, b: Aval) -> bool:
    """Return whether two types are equal except in symbolic sizes."""
    pairs = zip(a.shape, b.shape, strict=False)
    return a.dtype == b.dtype and a.ndim == b.ndim and all(s == t or _are_symbolic(s, t) for s, t in pairs)


def _are_symbolic(*sizes: Any) -> bool:
    return all(isinstance(size, SymbolicSize) for size in sizes)


suggest_in_module(globals())
