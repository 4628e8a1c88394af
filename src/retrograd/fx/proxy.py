"""Proxies for values that do not exist yet: operations on them are recorded in a graph."""

import math
import operator
from collections.abc import Callable, Iterator
from dis import get_instructions
from typing import TYPE_CHECKING, Any, NoReturn, cast

from retrograd.core import Op, Tensor
from retrograd.core.source_location import user_frame, user_line
from retrograd.fx.call_format import normalized_args
from retrograd.fx.dataclass_pytrees import members
from retrograd.fx.node import IN_PLACE, Node, map_leaves

if TYPE_CHECKING:
    from retrograd.fx.symbolic_tracer import Tracer


class TraceError(ValueError):
    """Traced code did something that is impossible with a value that does not exist yet."""


class Proxy:
    """Represents the result of a node while code is traced without example values.

    Operators on tensors, methods, attributes and Python's operators return further proxies, each of a new node.
    Operations that need the value raise an error with the user's line: `bool(proxy)`, iterating, `len`, `int`.
    Unpacking into names, as in `a, b = proxy`, works, because it determines the number of values.
    """

    def __init__(self, node: Node, tracer: "Tracer") -> None:
        self.node = node
        self.tracer = tracer

    @classmethod
    def __tensor_function__(cls, func: Callable, types: tuple, args: tuple, kwargs: dict[str, Any]) -> "Proxy":
        """Return a proxy for the node of an operator's call with proxies among its arguments."""
        if isinstance(func, Op):
            inputs = zip([p.name for p in func.schema.inputs], args, strict=True)
            args, kwargs = normalized_args(func, {**dict(inputs), **kwargs})
        return _tracer_among((args, kwargs)).create_proxy("call_function", func, args, kwargs)

    def __getattr__(self, name: str) -> "Attribute":
        if name.startswith("__") and name.endswith("__"):  # protocols that Python and NumPy probe
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> "Proxy":
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})

    __hash__ = object.__hash__
    __array_ufunc__ = None  # makes NumPy's arrays defer to the proxy's operators

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        instead = "compute with operators that answer with new tensors; what is made while tracing can't be written to"
        _refuse(self, "numbers are needed here", instead, TypeError)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __iter__(self) -> "Iterator":
        return self.tracer.iter(self)

    def __len__(self) -> int:
        _refuse(self, "len() of it is not known", "use x.shape[0] or x.size(), or fx.wrap('len')", RuntimeError)

    def __contains__(self, value: Any) -> bool:
        _refuse(self, "what is in it is not known")

    def __int__(self) -> int:
        _refuse(self, "int() needs its value", kind=TypeError)

    def __float__(self) -> float:
        _refuse(self, "float() needs its value", kind=TypeError)

    def __complex__(self) -> complex:
        _refuse(self, "complex() needs its value", kind=TypeError)

    def __index__(self) -> int:
        _refuse(self, "an integer is needed here, whose value is not known", "call a method of a tensor", TypeError)


class Attribute(Proxy):
    """An attribute of a proxy; it gets a node only if it is not called like a method."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class SizedProxy(Proxy):
    """The proxy of a parameter with known sizes."""

    def __init__(self, node: Node, tracer: "Tracer", tensor: Tensor) -> None:
        super().__init__(node, tracer)
        self.shape, self.ndim = tensor.shape, tensor.ndim
        self.size, self.numel, self.nelement, self.dim = tensor.size, tensor.numel, tensor.numel, tensor.dim


def _refuse(proxy: Proxy, what: str, instead: str = "", kind: type[Exception] = TraceError) -> NoReturn:
    """Return the error for an operation that a proxy does not support, with the line and the alternatives."""
    instead = instead or "give an argument that decides it in concrete_args, mark the function with fx.wrap, or use "
    raise kind(
        f"symbolic_trace: {proxy!r} stands for a value that is not there yet: {what}, at {user_line()}; "
        f"{instead}{'fx.trace, which runs the code on examples' if instead.endswith(' ') else ''}"
    )


def _operator(name: str, function: Callable, reflected: bool = False) -> Callable:
    def method(self: Proxy, *others: Any) -> Proxy:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    method.__name__ = name
    return method


UNARY = ("neg", "pos", "invert", "abs")
COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")

for _name in (*UNARY, *COMPARED, "getitem"):
    setattr(Proxy, f"__{_name}__", _operator(f"__{_name}__", getattr(operator, _name)))
for _name in IN_PLACE:
    _function = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
    setattr(Proxy, f"__{_name}__", _operator(f"__{_name}__", _function))
    setattr(Proxy, f"__r{_name}__", _operator(f"__r{_name}__", _function, reflected=True))
    setattr(Proxy, f"__i{_name}__", _operator(f"__i{_name}__", getattr(operator, f"i{_name}")))
for _name, _reflected in (("__divmod__", False), ("__rdivmod__", True)):
    setattr(Proxy, _name, _operator(_name, divmod, _reflected))
_ROUNDED: dict[str, Any] = {"round": round, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc}
for _name, _rounded in _ROUNDED.items():
    setattr(Proxy, f"__{_name}__", _operator(f"__{_name}__", _rounded))


def unpacked(proxy: Proxy) -> Iterator:
    """Return the members of a proxy that the user's line unpacks into names; raise if no line does."""
    frame = user_frame()
    if frame is not None:
        for instruction in get_instructions(frame.f_code):
            if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                return iter([operator.getitem(cast(Any, proxy), index) for index in range(instruction.arg or 0)])
    _refuse(proxy, "how often to iterate over it is not known")


def refuse_bool(proxy: Proxy) -> NoReturn:
    """Raise because a branch depends on a proxy."""
    _refuse(proxy, "its truth, on which a branch depends, is not known")


def refuse_hidden(value: Any) -> None:
    """Raise a TraceError for an object that contains proxies, because no node would have them as inputs."""
    held = members(value)
    if held and proxies_in(held):
        raise TraceError(
            f"symbolic_trace: a {type(value).__name__} holds {proxies_in(held)[0]!r}, which stands for a value that "
            f"is not there yet, and graphs can't make such objects; use a tuple, list, dict, NamedTuple or dataclass, "
            f"or make it in a function marked with fx.wrap"
        )


def proxies_in(values: Any) -> list[Proxy]:
    """Yield the proxies in nested containers."""
    found: list[Proxy] = []
    map_leaves(values, lambda leaf: found.append(leaf) if isinstance(leaf, Proxy) else None)
    return found


def _tracer_among(values: Any) -> "Tracer":
    tracers = list({id(p.tracer): p.tracer for p in proxies_in(values)}.values())
    if len(tracers) != 1:
        raise TraceError(f"expected proxies of one trace, got those of {len(tracers)}")
    return tracers[0]
