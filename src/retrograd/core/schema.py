"""Operator schemas: `softmax(Tensor x, int dim, *, dtype? dtype=None) -> Tensor`, parsed, bound and printed."""

import operator
import re
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from retrograd.core.aval import SymbolicSize
from retrograd.core.op import is_foreign
from retrograd.core.tensor import TensorBase

REQUIRED = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()

# Synonyms that PyTorch accepts; `input` and `other` name the first and second operand.
ALIASES = {
    "axis": "dim", "keepdims": "keepdim", "dims": "dim", "size": "shape", "split_size": "split_size_or_sections",
    "indices": "indices_or_sections", "sections": "indices_or_sections",
}  # fmt: skip
POSITIONS = {"input": 0, "self": 0, "other": 1}


class Parameter(NamedTuple):
    """One declared argument: its name, type, default (REQUIRED if none) and whether it must be named."""

    name: str
    type: str
    default: Any
    keyword_only: bool

    @property
    def is_tensor(self):
        """Whether the argument is an input (a tensor, an optional tensor, a list of tensors)."""
        return self.type.startswith("Tensor")


def foreign_in(value):
    """Return the objects with a `__tensor_function__` in a value for one of the params."""
    if isinstance(value, (tuple, list)):
        return [found for member in value for found in foreign_in(member)]
    return [value] if is_foreign(value) else []


def _integer(value):
    """Return an integer; as in PyTorch, booleans and arrays with dimensions raise a TypeError."""
    if type(value) is int:
        return value
    if isinstance(value, (TensorBase, np.ndarray)) and (value.ndim or value.dtype == bool):
        raise TypeError
    if isinstance(value, (bool, np.bool_)):
        raise TypeError
    return operator.index(value)


def _integers(value):
    if _is_one(value):
        return (_integer(value),)
    return tuple([v if isinstance(v, SymbolicSize) else _integer(v) for v in value])


def _dims_or_flag(value):
    """Return dimensions, or a bool that PyTorch takes in their position: `unbiased` of `std`."""
    return bool(value) if isinstance(value, (bool, np.bool_)) else _integers(value)


def _is_one(value):
    """Return whether a value is a single size: an integer, or an array or tensor without dimensions."""
    ndim = getattr(value, "ndim", None)
    return isinstance(value, int) or (type(ndim) is int and ndim == 0)


def _is_list(value):
    return hasattr(value, "__iter__") and not is_foreign(value)


def _boolean(value):
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError


def _string(value):
    if isinstance(value, str):
        return value
    raise TypeError


def _dtype(value):
    if is_foreign(value):  # np.dtype would read its attribute `dtype`
        raise TypeError
    return np.dtype(value)


def _number(value):
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, TensorBase) and (value._requires_grad or value.level is not None):
        raise TypeError  # its value alone would lose its gradient
    if is_foreign(value):
        raise TypeError
    return value.item()  # a 0-d array or tensor


def _each(convert, values):
    if isinstance(values, str):
        raise TypeError
    return tuple([convert(v) for v in values])


def _identity(value):
    return value


CONVERT = {
    "int": _integer,
    "float": float,
    "number": _number,
    "bool": _boolean,
    "str": _string,
    "int[]": _integers,
    "int...": _integers,
    "dims": _dims_or_flag,
    "dtype": _dtype,
    "any": _identity,
    "float[]": partial(_each, float),
    "bool[]": partial(_each, _boolean),
    "number[]": partial(_each, _number),
    "str[]": partial(_each, _string),
}
_ALREADY = {"int": int, "float": float, "bool": bool, "str": str}
_EXACT = {**_ALREADY, "int[]": tuple, "int...": tuple}  # a tuple of ints


class _ForeignParamError(Exception):
    """A call has an object of another class among its params, which handles the operator."""


class _Params:
    """An extra input of a call that has foreign objects among its params only: it lets these handle the call."""

    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs):
        args = [tuple([m for m in a if type(m) is not cls]) if isinstance(a, tuple) else a for a in args]
        foreign = [found for value in kwargs.values() for found in foreign_in(value)]
        types = tuple(dict.fromkeys(type(a) for a in foreign))
        for kind in types:
            answer = kind.__tensor_function__(func, types, tuple(args), kwargs)
            if answer is not NotImplemented:
                return answer
        names = ", ".join([kind.__name__ for kind in types])
        raise TypeError(
            f"no implementation of {func.__name__} for {names}: __tensor_function__ returned NotImplemented"
        )


class Schema:
    """The signature of an operator: inputs (tensors) and params (everything else).

    >>> parse("sum(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor").bind((1.5, 0), {})
    ((1.5,), {'dim': (0,), 'keepdim': False})
    """

    def __init__(self, name, parameters, returns):
        self.name = name
        self.parameters = parameters
        self.returns = returns
        self.outputs = _output_names(returns)
        self.inputs = tuple([p for p in parameters if p.type.startswith("Tensor")])
        self.params = tuple([p for p in parameters if not p.type.startswith("Tensor")])
        self.variadic = bool(self.inputs) and self.inputs[-1].type == "Tensor[]"
        self.defaults = {p.name: p.default for p in self.params if p.default is not REQUIRED}
        self.inputs_lead = self.inputs == tuple([p for p in parameters if not p.keyword_only][: len(self.inputs)])
        self.positional_params = tuple([p.name for p in self.params if not p.keyword_only])
        self.last_positional = ([None] + [p for p in parameters if not p.keyword_only])[-1]
        self.exact = {p.name: _EXACT.get(p.type.rstrip("?")) for p in self.params}
        self._by_name = {p.name: p for p in parameters}
        required = [p.default is REQUIRED and p.type != "int..." for p in parameters if not p.keyword_only]
        if required != sorted(required, reverse=True):
            raise ValueError(f"schema {self}: a required argument follows one with a default")

    def __str__(self):
        parts, starred = [], False
        for p in self.parameters:
            if p.keyword_only and not starred:
                parts.append("*")
                starred = True
            parts.append(f"{p.type} {p.name}" + ("" if p.default is REQUIRED else f"={p.default!r}"))
        return f"{self.name}({', '.join(parts)}) -> {self.returns}"

    def bind(self, args, kwargs):
        """Return the inputs of a call as one flat tuple, and its params by name; a TypeError says what is wrong."""
        given = self.given(args, kwargs)
        try:
            params = {p.name: self._convert(p, given) for p in self.params}
        except _ForeignParamError:
            return self._bind_foreign(given)
        return self._flatten(given), params

    def _bind_foreign(self, given):
        """Bind a call whose params include objects of other classes, which stay as they are."""
        foreign = {p.name: given[p.name] for p in self.params if foreign_in(given.get(p.name))}
        params = {p.name: foreign[p.name] if p.name in foreign else self._convert(p, given) for p in self.params}
        inputs = self._flatten(given)
        return inputs if any(map(is_foreign, inputs)) else (*inputs, _Params()), params

    def given(self, args, kwargs):
        """Return the arguments of a call by name, without conversion."""
        given = self._positional(args)
        for key, value in kwargs.items():
            name = self._resolve(key)
            if name in given:
                raise TypeError(f"{self.name}() got two values for {name!r}")
            given[name] = value
        return given

    def _positional(self, args):
        given = {}
        for index, (parameter, value) in enumerate(zip(self.parameters, args, strict=False)):
            if parameter.keyword_only:
                break
            if parameter.type == "int..." and (_is_one(value) or (args[index + 1 :] and not _is_list(value))):
                given[parameter.name] = args[index:]
                return given
            listed = parameter.type != "Tensor[]" or isinstance(value, (list, tuple))
            if not listed and parameter is self.last_positional:  # einsum("ij,jk->ik", a, b)
                given[parameter.name] = args[index:]
                return given
            given[parameter.name] = value
        if len(args) > len(given):
            raise TypeError(f"{self}: takes {len(given)} positional arguments, got {len(args)}")
        return given

    def _resolve(self, key):
        if key in self._by_name:
            return key
        if key in ALIASES and ALIASES[key] in self._by_name:
            return ALIASES[key]
        if POSITIONS.get(key, len(self.inputs)) < len(self.inputs):
            return self.inputs[POSITIONS[key]].name
        raise TypeError(f"{self}: unexpected argument {key!r}")

    def _convert(self, parameter, given):
        if parameter.name not in given:
            if parameter.default is REQUIRED:
                raise TypeError(f"{self}: missing argument {parameter.name!r}")
            return parameter.default
        value = given[parameter.name]
        if type(value) is _ALREADY.get(parameter.type, REQUIRED) or (value is None and "?" in parameter.type):
            return value
        try:
            return CONVERT[parameter.type.rstrip("?")](value)
        except (TypeError, ValueError, AttributeError):
            if foreign_in(value):
                raise _ForeignParamError from None
            raise TypeError(
                f"{self.name}(): {parameter.name} must be {parameter.type}, got {value!r} ({type(value).__name__})"
            ) from None

    def _flatten(self, given):
        flat = []
        for p in self.inputs:
            if p.name not in given and p.default is REQUIRED:
                raise TypeError(f"{self}: missing argument {p.name!r}")
            value = given.get(p.name, p.default)
            if p.type == "Tensor[]":
                if not isinstance(value, (list, tuple)):
                    raise TypeError(f"{self.name}(): {p.name} must be a list of tensors, got {type(value).__name__}")
                flat.extend(value)
            else:
                flat.append(value)
        return tuple(flat)

    def group(self, args):
        """Return a call's flat inputs by declared name; a list input collects the rest.

        >>> parse("cat(Tensor[] tensors, int dim=0) -> Tensor").group((1, 2))
        {'tensors': (1, 2)}
        """
        fixed = len(self.inputs) - self.variadic
        grouped = {p.name: a for p, a in zip(self.inputs[:fixed], args, strict=False)}
        if self.variadic:
            grouped[self.inputs[-1].name] = tuple(args[fixed:])
        return grouped

    def named(self, args, params):
        """Return all arguments of a call by name: grouped inputs, and params."""
        return {**self.group(args), **params}

    def named_outputs(self, out):
        """Return several outputs by name; {} for a single output."""
        return dict(zip(self.outputs, out, strict=True)) if self.outputs else {}


def _output_names(returns):
    """Return the names of several outputs, () for a single one: "(Tensor Q, Tensor R)" -> ("Q", "R")."""
    return tuple(re.findall(r"Tensor (\w+)", returns)) if returns.startswith("(") else ()


_HEAD = re.compile(r"\s*([\w.:]+)\s*\((.*)\)\s*->\s*(.+?)\s*$", re.DOTALL)
_PART = re.compile(r"\s*([A-Za-z]+(?:\[\]|\.\.\.)?\??)\s+(\w+)\s*(?:=\s*(.+?))?\s*$", re.DOTALL)
_LITERALS = {"None": None, "True": True, "False": False}


def _literal(text):
    if text in _LITERALS:
        return _LITERALS[text]
    if text[0] in "'\"":
        return text[1:-1]
    if text[0] == "(":
        return tuple(_literal(t.strip()) for t in text[1:-1].split(",") if t.strip())
    return float(text) if any(c in text for c in ".e") else int(text)


def _split(text):
    """Split at commas outside parentheses."""
    parts = re.split(r",(?![^()]*\))", text) if "(" in text else text.split(",")
    return [part for part in parts if part.strip()]


def parse(text):
    """Parse a schema; a ValueError shows the part that does not fit.

    >>> str(parse("clip(Tensor x, *, float? min=None) -> Tensor"))
    'clip(Tensor x, *, float? min=None) -> Tensor'
    """
    head = _HEAD.match(text)
    if not head:
        raise ValueError(f"schema {text!r}: expected name(arguments) -> returns")
    name, body, returns = head.groups()
    parameters, keyword_only = [], False
    for part in _split(body):
        if part.strip() == "*":
            keyword_only = True
            continue
        parameter = _parameter(part, keyword_only)
        if parameter is None:
            raise ValueError(f"schema {text!r}: cannot read the argument {part.strip()!r}")
        parameters.append(parameter)
    schema = Schema(name, tuple(parameters), returns)
    if "Tensor[]" in [p.type for p in schema.inputs[:-1]]:
        raise ValueError(f"schema {schema}: only the last tensor argument may be a list")
    return schema


@cache  # hundreds of operators share parts such as "Tensor x" and "int dim", parsed at import
def _parameter(part, keyword_only):
    """Return one declared argument; None if it cannot be parsed."""
    match = _PART.match(part)
    if not match or (match[1].rstrip("?") not in CONVERT and not match[1].startswith("Tensor")):
        return None
    default = REQUIRED if match[3] is None else _literal(match[3])
    return Parameter(match[2], match[1], default, keyword_only)
