"""Functions of graphs whose arguments are pytrees: flattened before the graph runs, and the result rebuilt after it."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import optree

from retrograd.core.overrides import foreign_objects
from retrograd.foundation.describe_value import describe
from retrograd.fx.codegen import CodeGen
from retrograd.utils._pytree import tree_flatten


class ConcreteArgumentError(AssertionError, ValueError):
    """An argument differs from the concrete one with which the code was traced: PyTorch's error, and Python's."""


class PyTreeInfo(NamedTuple):
    """The names of the arguments, their structure as a list, and the structure of the result."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class PyTreeCodeGen(CodeGen):
    """Code that takes pytrees, flattens them to a value for each placeholder, and returns a pytree.

    `defaults` has the values of arguments that may be omitted.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda d: {"sum": d["a"] + d["b"]}, {"d": {"a": fx.PH, "b": fx.PH}})
    >>> [node.name for node in module.graph.nodes], module({"a": 1, "b": 2})
    (['d_1', 'd_2', 'add', 'output'], {'sum': 3})
    """

    def __init__(self, pytree_info: PyTreeInfo, defaults: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.pytree_info = pytree_info
        self.defaults = defaults or {}

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the head of the function for its own arguments, and the line that flattens them."""
        head = super().gen_fn_def(list(self._parameters()), maybe_return_annotation)
        leaves = [re.split(r"[\s:=]", leaf.lstrip("*"), maxsplit=1)[0] for leaf in free_vars]
        targets = "".join([f"{leaf}, " for leaf in leaves if leaf])
        return f"{head}\n    [{targets.rstrip(', ')}] = tree_flatten_spec([{', '.join(self._names())}])"

    def generate_output(self, output_args: str) -> str:
        """Return the statement that rebuilds and returns the result."""
        return f"return tree_unflatten({output_args})"

    def process_inputs(self, *inputs: Any) -> list:
        """Return the leaves of the arguments; those that are omitted have their defaults."""
        defaults = {_default_name(name): value for name, value in self.defaults.items()}
        bind = eval(f"lambda {', '.join(self._parameters())}: [{', '.join(self._names())}]", defaults)
        return self.flatten(bind(*inputs))

    def process_outputs(self, outputs: Any) -> Any:
        """Return the result for the list of its leaves."""
        return self.unflatten(outputs)

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return the functions and defaults that the code uses."""
        defaults = [(_default_name(name), value) for name, value in self.defaults.items()]
        return [("tree_flatten_spec", self.flatten), ("tree_unflatten", self.unflatten), *defaults]

    def flatten(self, inputs: list) -> list:
        """Return the leaves of arguments; raise ConcreteArgumentError if one has another structure."""
        triples = zip(self._names(), inputs, self.pytree_info.in_spec.children(), strict=True)
        return [leaf for name, value, spec in triples for leaf in _leaves(name, value, spec)]

    def unflatten(self, outputs: Any) -> Any:
        """Return the result for the list of its leaves."""
        return optree.tree_unflatten(self.pytree_info.out_spec, outputs)

    def _names(self) -> list[str]:
        return [name.lstrip("*") for name in self.pytree_info.orig_args if name != "self"]

    def _parameters(self) -> Iterator[str]:
        """Yield the parameters as text; a required one after optional ones is keyword-only."""
        optional = False
        for name in self.pytree_info.orig_args:
            if optional and name not in self.defaults and not name.startswith("*"):
                yield "*"
                optional = False
            if name != "self":
                yield f"{name}={_default_name(name)}" if name in self.defaults else name
            optional = optional or name in self.defaults


def pytree_info(names: list[str], concrete: dict[str, Any]) -> PyTreeInfo:
    """Return the structure of arguments, those without a concrete value being leaves; names may have stars."""
    values = [concrete.get(name.lstrip("*"), Ellipsis) for name in names]
    return PyTreeInfo(names, tree_flatten(values)[1], None)


def _default_name(name: str) -> str:
    return f"default_{name}"


def _leaves(name: str, value: Any, spec: Any) -> list:
    """Return the parts of an argument by a structure; of a proxy, those that its members will have."""
    if not spec.is_leaf() and any(found is value for found in foreign_objects(value)):
        return _members(value, spec)
    try:
        return spec.flatten_up_to(value)
    except ValueError as error:
        raise ConcreteArgumentError(
            f"{name} has been specialized to have the structure {spec} but got another value, {describe(value)}: "
            f"{error}"
        ) from None


def _members(value: Any, spec: Any) -> list:
    """Return the leaves that a proxy's value will have, each by its key or index."""
    if spec.is_leaf():
        return [value]
    pairs = zip(spec.entries(), spec.children(), strict=True)
    return [leaf for entry, child in pairs for leaf in _members(value[entry], child)]
