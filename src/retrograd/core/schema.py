"""Operator schemas such as `softmax(Tensor x, int dim, *, dtype? dtype=None) -> Tensor`, bound to calls."""

import operator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from retrograd.core.aval import SymbolicSize
from retrograd.core.dtype import TABLE, as_dtype
from retrograd.core.op import is_foreign
from retrograd.core.overrides import foreign_objects
from retrograd.core.tensor import TensorBase
from retrograd.foundation.suggestions import did_you_mean, unfit_argument

REQUIRED = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()

# Synonyms that PyTorch accepts; POSITIONS are its names of the first, second and third operand.
ALIASES = {
    "axis": "dim", "keepdims": "keepdim", "dims": "dim", "axes": "dims", "size": "shape",
    "split_size": "split_size_or_sections", "indices": "indices_or_sections", "sections": "indices_or_sections",
}  # fmt: skip
POSITIONS = {
    "input": 0, "self": 0, "other": 1, "mat2": 1, "vec": 1, "vec2": 1, "tensor": 1, "input2": 1, "input3": 2,
}  # fmt: skip


class Parameter(NamedTuple):
    """One declared argument: name, type, default (REQUIRED if none), whether it must be named, and is written to."""

    name: str
    type: str
    default: Any
    keyword_only: bool
    mutated: bool = False

    @property
    def is_tensor(self):
        """Whether the argument is an input (a tensor, an optional tensor, a list of tensors)."""
        return self.type.startswith("Tensor")

    @property
    def is_list(self):
        """Whether the argument is a list."""
        return "[]" in self.type


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
    return as_dtype(value)


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
    "device": _identity,  # converted by the schemas of custom operators
    "float[]": partial(_each, float),
    "bool[]": partial(_each, _boolean),
    "number[]": partial(_each, _number),
    "str[]": partial(_each, _string),
    "dtype[]": partial(_each, _dtype),
    "any[]": tuple,
}
_ALREADY = {"int": int, "float": float, "bool": bool, "str": str}
# The types of values that need no conversion: a tuple of ints; any object; a number that is no bool; a dtype.
_EXACT = {
    **_ALREADY, "int[]": tuple, "int...": tuple, "dims": tuple, "any": object, "number": complex, "dtype": np.dtype,
}  # fmt: skip


class _ForeignParamError(Exception):
    """A call has an object of another class among its params, which handles the operator."""


class Schema:
    """The signature of an operator: inputs (tensors) and params (everything else).

    >>> parameters = Parameter("x", "Tensor", REQUIRED, False), Parameter("dim", "int[]?", None, False)
    >>> Schema("sum", parameters).bind((1.5, 0), {})
    ((1.5,), {'dim': (0,)})
    """

    reserved: tuple[str, ...] = ()  # names that arguments can't have
    lists_anywhere = False  # whether an argument other than the last input may be a list of tensors
    has_alias_annotations = False  # whether results may have the mark of an argument, whose memory they share

    def __init__(self, name, parameters, results="Tensor", outputs=(), aliases=()):
        self.name = name
        self.aliases = aliases  # pairs of an index of the results, and the argument whose memory that shares
        self.parameters = parameters
        self.results = results  # the type of the result, or a tuple of types
        self.outputs = outputs  # the names of several results
        inputs, params, positional, listed = [], [], [], []
        self.defaults, self.exact, self._by_name, self._conversions, self._slots = {}, {}, {}, None, None
        for p in parameters:  # one loop: importing the library makes hundreds of schemas
            name, kind, default, keyword_only, _ = p
            self._by_name[name] = p
            if not keyword_only:
                positional.append(p)
            if kind.startswith("Tensor"):
                inputs.append(p)
                if "[]" in kind:
                    listed.append(p)
            else:
                params.append(p)
                self.exact[name] = _EXACT.get(kind.rstrip("?"))
                if default is not REQUIRED:
                    self.defaults[name] = default
        self.inputs, self.params = tuple(inputs), tuple(params)
        self.variadic = bool(listed) and listed == inputs[-1:] and listed[0].type == "Tensor[]"
        self.inputs_lead = inputs == positional[: len(inputs)]
        self.positional_params = tuple([p.name for p in params if not p.keyword_only])
        # Whether integers after the inputs are one param together: x.reshape(2, 3).
        self.spreads = bool(params) and params[0].type == "int..."
        self.last_positional = positional[-1].name if positional else None
        if listed and not (self.variadic or self.lists_anywhere):
            raise ValueError(f"schema {self}: only the last tensor argument may be a list")

    def renamed(self, name):
        """Return the schema under another name."""
        new = object.__new__(type(self))
        vars(new).update(vars(self), name=name)
        return new

    def __str__(self):
        parts = []
        for i, p in enumerate(self.parameters):
            if p.keyword_only and "*" not in parts:
                parts.append("*")
            marked = p.mutated or any(p.name == argument for _, argument in self.aliases)
            mark = f"(a{i}{'!' * p.mutated})" if marked else ""
            kind = p.type.replace("Tensor", f"Tensor{mark}")
            parts.append(f"{kind} {p.name}" + ("" if p.default is REQUIRED else f"={_literal(p.default)}"))
        return f"{self.name}({', '.join(parts)}) -> {self.returns}"

    @property
    def returns(self):
        """The results as text, with their names."""
        return written_results(self.results, self.outputs)

    def slots(self):
        """Return what `Op.quick_bind` asks of each argument, listed at its first call as for `bind`.

        That is the name, the default, whether there is none, whether the argument must be named, its exact type,
        whether None is a value, and whether it is an input or a list.
        """
        if self._slots is None:
            # All at once: another thread may read it.
            self._slots = [self._slot(*parameter) for parameter in self.parameters]
        return self._slots

    def _slot(self, name, kind, default, keyword_only, _):
        is_input, is_list = kind.startswith("Tensor"), "[]" in kind
        return name, default, default is REQUIRED, keyword_only, self.exact.get(name), "?" in kind, is_input, is_list

    def bind(self, args, kwargs):
        """Return the inputs of a call as one flat tuple, and its params by name; a TypeError says what is wrong."""
        given = self.given(args, kwargs)
        params = {}
        for name, kind, optional, default, parameter in self._conversions or self._list_conversions():
            value = given.get(name, REQUIRED)
            if value is REQUIRED and default is not REQUIRED:
                value = default
            elif type(value) is not kind and not (value is None and optional):
                try:
                    value = self._convert(parameter, given)
                except _ForeignParamError:
                    return self._bind_foreign(given)
            params[name] = value
        return self._flatten(given), params

    def _list_conversions(self):
        """Return what `bind` asks of each param, listed at its first call: importing makes hundreds of schemas."""
        self._conversions = [(p.name, _ALREADY.get(p.type), "?" in p.type, p.default, p) for p in self.params]
        return self._conversions

    def _bind_foreign(self, given):
        """Bind a call whose params include objects of other classes, which stay as they are."""
        foreign = {p.name: given[p.name] for p in self.params if foreign_objects(given.get(p.name))}
        params = {p.name: foreign[p.name] if p.name in foreign else self._convert(p, given) for p in self.params}
        return self._flatten(given), params

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
        for (name, kind, _, keyword_only, _), value in zip(self.parameters, args, strict=False):
            if keyword_only:
                break
            rest = len(given)  # the index of the value
            if kind == "int..." and (_is_one(value) or (rest + 1 < len(args) and not _is_list(value))):
                given[name] = args[rest:]
                return given
            if kind == "Tensor[]" and not isinstance(value, (list, tuple)) and name == self.last_positional:
                given[name] = args[rest:]  # einsum("ij,jk->ik", a, b)
                return given
            given[name] = value
        if len(args) > len(given):
            named = next((f"; name the others: {p.name}=..." for p in self.parameters if p.keyword_only), "")
            raise TypeError(f"{self}: takes {len(given)} positional arguments, got {len(args)}{named}")
        return given

    def _resolve(self, key):
        if key in self._by_name:
            return key
        if key in ALIASES and ALIASES[key] in self._by_name:
            return ALIASES[key]
        if POSITIONS.get(key, len(self.inputs)) < len(self.inputs):
            return self.inputs[POSITIONS[key]].name
        raise self.unknown_keyword(key)

    def unknown_keyword(self, key):
        """Return the error for a keyword that is no argument."""
        aliases = [alias for alias, name in ALIASES.items() if name in self._by_name]
        suggested = did_you_mean(key, [*self._by_name, *aliases])
        return TypeError(f"{self.name}() got an unexpected keyword argument {key!r}{suggested or '.'} It takes {self}")

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
            if foreign_objects(value):
                raise _ForeignParamError from None
            words = unfit_argument(self.name, parameter.name, parameter.type, value, TABLE, self.variadic)
            raise TypeError(words) from None

    def _flatten(self, given):
        flat = []
        for name, kind, default, _, _ in self.inputs:
            value = given.get(name, default)
            if value is REQUIRED:
                raise TypeError(f"{self}: missing argument {name!r}")
            if "[]" not in kind:
                flat.append(value)
            elif isinstance(value, (list, tuple)):
                flat.extend(value)
            elif value is not None or not kind.endswith("?"):
                raise TypeError(f"{self.name}(): {name} must be a list of tensors, got {type(value).__name__}")
        return tuple(flat)

    def group(self, args):
        """Return a call's flat inputs by declared name; a list input collects the rest.

        >>> Schema("cat", (Parameter("tensors", "Tensor[]", REQUIRED, False),)).group((1, 2))
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


def _literal(value):
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return value.name if isinstance(value, np.dtype) else repr(value)


def written_results(results, names=()):
    """Return the results as text, each with its name if there are names."""
    if isinstance(results, str):
        return results
    members = [written_results(r) for r in results]
    if names:
        members = [f"{member} {name}" for member, name in zip(members, names, strict=True)]
    comma = "," if len(results) == 1 else ""  # without it, parentheses would only group
    return f"({', '.join(members)}{comma})"
