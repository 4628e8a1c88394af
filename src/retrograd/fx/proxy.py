"""Proxies for values that do not exist yet: operations on them are recorded in a graph by a tracer."""

import dataclasses
import math
import operator
from collections.abc import Callable, Iterator
from dis import Instruction, get_instructions
from itertools import pairwise
from typing import Any, NoReturn, cast

from retrograd.autograd.function.base import FunctionOp
from retrograd.core import Op, Tensor
from retrograd.core.overrides import positional_parameters, resolve_call
from retrograd.foundation.source_location import user_frame, user_line
from retrograd.fx.call_format import normalized_args
from retrograd.fx.dataclass_pytrees import members
from retrograd.fx.graph import Graph
from retrograd.fx.module_stack import Scope, ScopeContextManager
from retrograd.fx.node import IN_PLACE, Node, has_side_effect, is_record, map_leaves
from retrograd.fx.operator_schemas import check_for_mutable_operation
from retrograd.fx.traceback import copied_meta
from retrograd.library import CustomOperator
from retrograd.nn.parameter import Parameter

_NEW_TENSORS = "use operators that return new tensors; a tensor that was created while tracing can't be written to"

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


ITERATED = (
    "This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument; the number of "
    "its members is not known"
)


class TraceError(ValueError):
    """Traced code did something that is impossible with a value that does not exist yet."""


class TracerBase:
    """Records nodes in `graph`; the base of `Tracer` and of custom tracers.

    Subclasses override `create_node`, which every node goes through; `create_arg`, the form of values; `proxy`, the
    class of proxies; `to_bool`, `iter` and `keys`, a proxy's truth and members.

    Class attributes decide details.  With `record_stack_traces` nodes have `meta["stack_trace"]`;
    `check_mutable_operations` refuses calls of operators that write to their arguments; with `trace_asserts` the
    condition of an `assert` becomes a node that checks it.

    >>> from retrograd import fx
    >>> class Counting(fx.proxy.GraphAppendingTracer):
    ...     count = 0
    ...
    ...     def create_node(self, *args, **kwargs):
    ...         self.count += 1
    ...         return super().create_node(*args, **kwargs)
    >>> graph = fx.Graph()
    >>> tracer = Counting(graph)
    >>> x = fx.Proxy(graph.placeholder("x"), tracer)
    >>> y = x.relu() + x
    >>> tracer.count
    2
    """

    graph: Graph
    record_stack_traces = True
    check_mutable_operations = False
    trace_asserts = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: dict[str, tuple[str, type]]  # the running modules: qualified name -> (name, class)
    node_name_to_scope: dict[str, tuple[str, Any]]

    def begin_graph(self, graph: Graph) -> None:
        """Record in a graph from now on."""
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack, self.node_name_to_scope = {}, {}

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple,
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Return a new node, with metadata of the user's line and the running modules."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = self.scope.module_path, self.scope.module_type
        if self.record_stack_traces and kind not in ("placeholder", "output"):
            node.meta["stack_trace"] = user_line()
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        node.meta.update(copied_meta())
        return node

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple,
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: "Callable[[Node], Proxy] | None" = None,
    ) -> "Proxy":
        """Return the proxy of a new node, whose arguments may contain proxies.

        `proxy_factory_fn(node)` replaces the method `proxy`.
        """
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def proxy(self, node: Node) -> "Proxy":
        """Return the proxy of a node."""
        return Proxy(node, self)

    def create_arg(self, a: Any) -> Any:
        """Return a value's form in the graph: nodes for proxies, in nested containers too.

        A named tuple or dataclass that contains proxies becomes a node that constructs it.  An object with a method
        `__fx_create_arg__(tracer)` gives its own form.
        """
        if is_record(a):
            return self._constructor_node(a)
        if isinstance(a, tuple):
            return tuple([self.create_arg(member) for member in a])
        if isinstance(a, list):
            return [self.create_arg(member) for member in a]
        if isinstance(a, dict):
            return {_plain_key(key): self.create_arg(value) for key, value in a.items()}
        return map_leaves(a, self._leaf)

    def _leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, Proxy):
            if leaf.tracer.graph is not self.graph:
                raise ValueError(f"{leaf!r} is of another trace")
            return leaf.node
        if hasattr(type(leaf), "__fx_create_arg__"):
            return leaf.__fx_create_arg__(self)
        check_no_hidden_proxies(leaf)
        return leaf

    def _constructor_node(self, record: Any) -> Any:
        """Return the node that constructs a named tuple or dataclass from its fields."""
        if isinstance(record, tuple):
            return self.create_node("call_function", type(record), self.create_arg(tuple(record)), {})
        fields = {f.name: getattr(record, f.name) for f in dataclasses.fields(record) if f.init}
        return self.create_node("call_function", type(record), (), self.create_arg(fields))

    def to_bool(self, obj: "Proxy") -> bool:
        """Return the truth of a proxy: here, raise a TraceError."""
        _raise_trace_error(obj, "symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: "Proxy") -> Iterator:
        """Return the members of a proxy: here, raise a TraceError."""
        _raise_trace_error(obj, f"Proxy object cannot be iterated. {ITERATED}")

    def keys(self, obj: "Proxy") -> Any:
        """Return the keys of a proxy: here, the proxy of a call of its method `keys`."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """The tracer of proxies that are created from a node alone; it appends to the node's graph."""

    def __init__(self, graph: Graph) -> None:
        self.begin_graph(graph)


def _plain_key(key: Any) -> Any:
    if proxies_in(key):
        raise RuntimeError(
            f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {proxies_in(key)[0]!r}"
        )
    return key


def _in_usual_form(op: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Op, tuple, dict[str, Any]]:
    """Return the operator that a call runs, and its arguments as nodes have them."""
    op, args, kwargs = resolve_call(op, args, kwargs)
    args, kwargs = op.call_arguments(*op.schema.bind(args, kwargs))
    inputs = zip(positional_parameters(op.schema), args, strict=True)
    tensors = {p.name: list(a) if p.is_list and isinstance(a, tuple) else a for p, a in inputs}
    return op, *normalized_args(op, {**op.schema.defaults, **tensors, **kwargs})


class Proxy:
    """Represents the result of a node while code is traced without example values.

    Operators on tensors, methods, attributes and Python's operators return further proxies, each of a new node.
    Operations that need the value raise an error with the user's line: `bool(proxy)`, iterating, `len`, `int`.
    Unpacking into names, as in `a, b = proxy`, works, because it determines the number of values.

    Without a tracer, operations are appended to the graph of the node, at its current position:

    >>> from retrograd import fx
    >>> graph = fx.Graph()
    >>> x = fx.Proxy(graph.placeholder("x"))
    >>> output = graph.output((x.relu() + 1).node)
    >>> [node.name for node in graph.nodes]
    ['x', 'relu', 'add', 'output']
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    @classmethod
    def __tensor_function__(cls, func: Callable, types: tuple, args: tuple, kwargs: dict[str, Any]) -> "Proxy":
        """Return a proxy for the node of an operator's call with proxies among its arguments."""
        if func is Tensor.__getitem__:
            func = operator.getitem
        elif func is Tensor.__setitem__:
            _raise_trace_error(proxies_in(args)[0], "numbers are needed here", _NEW_TENSORS, TypeError)
        elif isinstance(func, CustomOperator):
            args, kwargs = normalized_args(func, func.schema.given(args, kwargs))
        elif isinstance(func, Op) and not isinstance(func, FunctionOp):
            func, args, kwargs = _in_usual_form(func, args, kwargs)
        return _common_tracer((args, kwargs)).create_proxy("call_function", func, args, kwargs)

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
        _raise_trace_error(self, "numbers are needed here", _NEW_TENSORS, TypeError)

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_in_assert():
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def __iter__(self) -> "Iterator":
        count = _unpacked_count()
        if count is None:
            return self.tracer.iter(self)
        return iter([operator.getitem(cast(Any, self), index) for index in range(count)])

    def keys(self) -> Any:
        """Return the keys of a mapping, as the tracer's `keys` gives them."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        what = (
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "fx.wrap('len') at module scope"
        )
        _raise_trace_error(self, what, "use x.shape[0] or x.size()", RuntimeError)

    def __contains__(self, value: Any) -> bool:
        _raise_trace_error(self, "its members are not known")

    def __int__(self) -> int:
        _raise_trace_error(self, "int() needs its value", kind=TypeError)

    def __float__(self) -> float:
        _raise_trace_error(self, "float() needs its value", kind=TypeError)

    def __complex__(self) -> complex:
        _raise_trace_error(self, "complex() needs its value", kind=TypeError)

    def __index__(self) -> int:
        _raise_trace_error(
            self, "an integer is needed here, whose value is not known", "call a method of a tensor", TypeError
        )


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


class ParameterProxy(Proxy):
    """The proxy of a parameter with known sizes: code may branch on them."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        self.name, self.param = name, param
        self.shape, self.ndim = param.shape, param.ndim

    def size(self, *dim: int) -> Any:
        """Return the size of one dimension, or of all."""
        return self.param.size(*dim)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """Return the number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """Return the number of elements."""
        return self.param.numel()

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"


@has_side_effect
def assert_fn(x: object) -> None:
    """Raise AssertionError unless x is true."""
    if not x:
        raise AssertionError


def _raise_trace_error(proxy: Proxy, what: str, instead: str = "", kind: type[Exception] = TraceError) -> NoReturn:
    """Return the error for an operation that a proxy does not support, with the line and the alternatives."""
    instead = instead or "give an argument that decides it in concrete_args, mark the function with fx.wrap, or use "
    raise kind(
        f"symbolic_trace: {proxy!r} is a placeholder for a value that is not known yet: {what}, at {user_line()}; "
        f"{instead}{'fx.trace, which runs the code on examples' if instead.endswith(' ') else ''}"
    )


def _operator(name: str, function: Callable, reflected: bool = False) -> Callable:
    def method(self: Proxy, *others: Any) -> Proxy:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    method.__name__ = name
    return method


UNARY = ("neg", "pos", "invert", "abs")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")

for _name in (*UNARY, *COMPARISONS, "getitem"):
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


def _remaining_instructions() -> list[Instruction]:
    """Return the instructions of the user's code from the running one on."""
    frame = user_frame()
    if frame is None:
        return []
    return [i for i in get_instructions(frame.f_code) if i.offset >= frame.f_lasti]


def _unpacked_count() -> int | None:
    """Return the number of names into which the user's line unpacks a value; None if it does not."""
    remaining = _remaining_instructions()[:1]
    return remaining[0].arg or 0 if remaining and remaining[0].opname == "UNPACK_SEQUENCE" else None


def _is_in_assert() -> bool:
    """Return whether the user's line needs a truth for `assert`: then its code raises AssertionError if it is false."""
    # Only the byte code distinguishes `assert x` from `if x`, because both call `bool(x)`.
    names = [instruction.opname for instruction in _remaining_instructions()[:3]]
    return any(a.endswith("IF_TRUE") and b == "LOAD_ASSERTION_ERROR" for a, b in pairwise(names))


def check_no_hidden_proxies(value: Any) -> None:
    """Raise a TraceError for an object that contains proxies, because no node would have them as inputs."""
    contained = members(value)
    if contained and proxies_in(contained):
        raise TraceError(
            f"symbolic_trace: a {type(value).__name__} holds {proxies_in(contained)[0]!r}, a placeholder for a value "
            f"that is not known yet, and graphs can't make such objects; use a tuple, list, dict, NamedTuple or "
            f"dataclass, or make it in a function marked with fx.wrap"
        )


def proxies_in(values: Any) -> list[Proxy]:
    """Yield the proxies in nested containers."""
    found: list[Proxy] = []
    map_leaves(values, lambda leaf: found.append(leaf) if isinstance(leaf, Proxy) else None)
    return found


def _common_tracer(values: Any) -> TracerBase:
    tracers = list({id(p.tracer.graph): p.tracer for p in proxies_in(values)}.values())
    if len(tracers) != 1:
        raise TraceError(f"Found multiple different tracers: expected proxies of one trace, got {len(tracers)}")
    return tracers[0]
