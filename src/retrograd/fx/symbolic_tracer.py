"""Symbolic tracing: code runs on proxies instead of tensors; modules, methods and functions stay calls."""

import copy
import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from itertools import count
from types import ModuleType
from typing import Any, cast

import optree

from retrograd.core import Tensor
from retrograd.core.blocks import generator_block
from retrograd.fx.calling_convention import STARS, Callee, annotation_or_none
from retrograd.fx.concrete_arguments import PHBase, record_check
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule, extract, tensors_and_modules
from retrograd.fx.module_stack import Scope, ScopeContextManager
from retrograd.fx.proxy import ParameterProxy, Proxy, TracerBase
from retrograd.fx.pytree_codegen import PyTreeCodeGen, pytree_info
from retrograd.fx.traced_writes import mutated_tensors
from retrograd.fx.wrapped_functions import wrapped_calls
from retrograd.nn import Sequential
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.utils._pytree import tree_flatten


def symbolic_trace(root: Module | Callable, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Run a function or module on proxies for its arguments, and return the recorded calls as a `GraphModule`.

    No examples are needed, and shapes are unknown.  Calls of rg.nn's own modules are `call_module` nodes, which the
    result shares with `root`; methods of tensors are `call_method`; operators, custom ones too, an `autograd.Function`
    and functions of Python's module `operator` are `call_function`.  Operations on values that do not depend on the
    arguments run at once, but parameters and buffers are read from the module.  Control flow that depends on an
    argument is an error that names the line; see `fx.trace`, which runs the code on examples.

    `concrete_args` has values of arguments by name, with which the code runs.  The result still takes these arguments,
    and raises an AssertionError if a number, a string, a dtype or None differs; a warning says which values are not
    checked.  Each leaf of nested lists, tuples and dicts is an input of the graph: of `x` the inputs `x_1`, `x_2`, ...
    `fx.PH` marks a leaf whose value is unknown.

    >>> import retrograd as rg
    >>> from retrograd import fx
    >>> def f(x, double):
    ...     return x.relu() * 2 if double else x
    >>> module = fx.symbolic_trace(f, concrete_args={"double": True})
    >>> module(rg.tensor([-1.0, 2.0]), True)
    tensor([0., 4.])
    >>> [node.name for node in module.graph.nodes]
    ['x', 'double_1', 'eq', '_assert', 'relu', 'mul', 'output']
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root._get_name() if isinstance(root, Module) else getattr(root, "__name__", type(root).__name__)
    return GraphModule(tracer.root, graph, name)


class Tracer(TracerBase):
    """The tracer behind `symbolic_trace`; subclasses change its decisions.

    Subclasses override `is_leaf_module`, the modules that are not traced into; `getattr`, the attributes of modules;
    `traced_func_name`, the traced method of a module; and the methods of `TracerBase`.  `trace` returns the graph, and
    stores in `root` the attributes that a `GraphModule` of it needs.

    Functions of the modules in `autowrap_modules`, and `autowrap_functions` that the traced function's module calls
    by name, are one node each when called with proxies.  With `param_shapes_constant` the shapes of parameters are
    ints, not nodes.

    >>> from retrograd import fx, nn
    >>> class Fine(fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return False
    >>> [node.op for node in Fine().trace(nn.Linear(2, 2)).nodes]
    ['placeholder', 'get_attr', 'get_attr', 'call_function', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self.root: Module = Module()
        self.begin_graph(Graph(tracer_cls=type(self)))
        self.param_shapes_constant = param_shapes_constant
        self._autowrapped = autowrap_modules, autowrap_functions
        self._paths: dict[int, str] = {}  # id of a module, parameter, buffer or constant -> its qualified name
        self._registered: set[int] = set()  # ids of parameters and buffers
        self._constants: dict[str, Tensor] = {}
        self._attributes: dict[str, Proxy] = {}
        self._calls: dict[str, int] = {}  # qualified name of a module -> the number of its latest call, from 0

    def trace(self, root: Module | Callable, concrete_args: dict[str, Any] | tuple | None = None) -> Graph:
        """Return the graph of `root`; `concrete_args` are values of arguments by name, or of all in a tuple."""
        module = root if isinstance(root, Module) else Module()
        if not callable(root):
            raise TypeError(f"symbolic_trace: expected a function or a module, got {type(root).__name__}")
        callee = self._callee(root)
        self.begin(module)
        concrete = self._concrete_by_name(callee, concrete_args or {})
        self._set_codegen(callee, concrete)
        args = self._arguments(callee, concrete)
        with _set_is_tracing(), _intercept_modules(module, self), wrapped_calls(callee.function, *self._autowrapped):
            result = callee.call(args, concrete)
        if self._is_flat(root):
            self.graph.signature = cast(GraphModule, root).graph.signature
        self.end(result, module, callee.returns)
        return self.graph

    def _is_flat(self, root: Any) -> bool:
        """Return whether the traced function is that of a graph module's graph, to which its signature belongs."""
        return self.traced_func_name == "forward" and getattr(type(root), "forward", None) is GraphModule.forward

    def _callee(self, root: Module | Callable) -> Callee:
        """Return the traced function or method of a module; for a graph module the function of the graph."""
        if not isinstance(root, Module):
            return Callee(root)
        if self._is_flat(root):
            module = cast(GraphModule, root)
            return Callee(module.flat_forward, module.flat_signature)
        found = getattr(root, self.traced_func_name, None)
        if not callable(found):
            raise ValueError(f"symbolic_trace: {type(root).__name__} has no method {self.traced_func_name!r} to trace")
        return Callee(found)

    def begin(self, module: Module) -> None:
        """Start an empty graph for the code of a module."""
        self.begin_graph(Graph(tracer_cls=type(self)))
        self.root = module  # which methods of subclasses may read
        # Reversed, so that an object with several names gets the first one.
        self._paths = {id(value): name for name, value in reversed(tensors_and_modules(module))}
        self._registered = {id(tensor) for tensor in (*module.parameters(), *module.buffers())}
        self._constants, self._attributes, self._calls = {}, {}, {}

    def end(self, result: Any, module: Module, type_expr: Any = None) -> None:
        """Finish the graph with the result of the code, and its annotation."""
        codegen = self.graph._codegen
        if isinstance(codegen, PyTreeCodeGen):
            result, spec = tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=spec)
        self.create_node("output", "output", (self.create_arg(result),), {}, None, type_expr)
        self.root = self.home(module, mutated_tensors(self.graph.signature))

    def home(self, module: Module, keep: Iterable[str] = ()) -> Module:
        """Return a bare module with the attributes of the graph, and those of `module` under further names."""
        targets = [str(n.target) for n in self.graph.nodes if n.op in ("get_attr", "call_module")]
        home = extract(module, [*keep, *(target for target in targets if target not in self._constants)])
        for name, tensor in self._constants.items():
            setattr(home, name, tensor)
        return home

    def _concrete_by_name(self, callee: Callee, concrete: dict[str, Any] | tuple) -> dict[str, Any]:
        """Return concrete arguments by their names."""
        if not isinstance(concrete, tuple):
            return dict(concrete)
        names = [p.name for p in callee.parameters if p.kind not in STARS]
        if len(names) != len(concrete):
            raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(concrete)} concrete arguments")
        return dict(zip(names, concrete, strict=True))

    def _arguments(self, callee: Callee, concrete: dict[str, Any]) -> list:
        """Return proxies and concrete values for the parameters, in their order, and create placeholders."""
        unknown = concrete.keys() - {p.name for p in callee.parameters}
        if unknown:
            raise ValueError(f"symbolic_trace: concrete_args has {sorted(unknown)}, which are no arguments of the code")
        return [
            self._concrete_argument(p, concrete[p.name]) if p.name in concrete else self._input(p)
            for p in callee.parameters
        ]

    def _set_codegen(self, callee: Callee, concrete: dict[str, Any]) -> None:
        """Let the function flatten its arguments, if a concrete one has members."""
        info = pytree_info([f"{STARS.get(p.kind, '')}{p.name}" for p in callee.parameters], concrete)
        if not all(spec.is_leaf() for spec in info.in_spec.children()):
            defaults = {p.name: p.default for p in callee.parameters if p.default is not p.empty}
            self.graph.set_codegen(PyTreeCodeGen(info, defaults))

    def _concrete_argument(self, parameter: inspect.Parameter, value: Any) -> Any:
        """Return a concrete argument, with proxies in place of PH, and create a placeholder for each of its leaves."""
        leaves, spec = tree_flatten(value)
        default = () if parameter.default is parameter.empty or not spec.is_leaf() else (parameter.default,)
        found = [
            self._concrete_leaf(parameter.name, f"{parameter.name}_{number}", default, leaf)
            for number, leaf in enumerate(leaves, 1)
        ]
        return optree.tree_unflatten(spec, found)

    def _concrete_leaf(self, name: str, target: str, default: tuple, value: Any) -> Any:
        """Return a leaf of a concrete argument, which the graph checks; a proxy for PH, with the attributes of that."""
        proxy = self.create_proxy("placeholder", target, default, {})
        if isinstance(value, PHBase):
            vars(proxy.node).update(vars(value))
            return proxy
        record_check(name, proxy, value)
        return value

    def _input(self, parameter: inspect.Parameter) -> Proxy:
        """Return the proxy of a parameter's placeholder."""
        name = f"{STARS.get(parameter.kind, '')}{parameter.name}"
        proxy = self.create_proxy("placeholder", name, (), {}, type_expr=annotation_or_none(parameter.annotation))
        if parameter.default is not parameter.empty:
            proxy.node.args = (parameter.default,)  # as it is: create_arg would make a node of a tensor
        return proxy

    # -------------------------------------------------------------------------------------------- overridable decisions

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether a call of a module becomes one node; if not, it is traced.

        True for rg.nn's own modules, and for graph modules that check shapes, such as those of `fx.trace`.
        """
        if isinstance(m, GraphModule) and m.graph.signature is not None:
            return True
        return type(m).__module__.startswith("retrograd.nn") and not isinstance(m, Sequential)

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the result of a submodule's call; `forward` is its own implementation."""
        path = self.path_of_module(m)
        with self.module_scope(m):
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)

    def path_of_module(self, mod: Module) -> str:
        """Return the qualified name of a submodule; raise NameError if it is none."""
        if id(mod) not in self._paths:
            raise NameError(f"symbolic_trace: a {type(mod).__name__} is no submodule of the traced module")
        return self._paths[id(mod)]

    def _leaf(self, leaf: Any) -> Any:
        return self._read(leaf).node if isinstance(leaf, Tensor) else super()._leaf(leaf)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Return the value that code reads as a module's attribute: a proxy for a parameter or buffer.

        `parameter_proxy_cache` has the proxies of the attributes of the graph, by qualified name.
        """
        return self.attribute(attr_val) if id(attr_val) in self._registered else attr_val

    # --------------------------------------------------------------------------------------------------- nodes

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name that begins with `prefix`, and is free in the traced module and the graph."""
        taken = {*self._paths.values()}
        return next(name for name in (f"{prefix}{number}" for number in count()) if name not in taken)

    def attribute(self, tensor: Tensor) -> Proxy:
        """Return the proxy of a parameter, buffer or constant; reads of one through the module share it."""
        name = self._name_of(tensor)
        if name not in self._attributes:
            self._attributes[name] = self._read(tensor)
        return self._attributes[name]

    def _read(self, tensor: Tensor) -> Proxy:
        """Return the proxy of a new node that reads a parameter, buffer or constant."""
        name = self._name_of(tensor)
        read = self.create_proxy("get_attr", name, (), {})
        sized = self.param_shapes_constant and isinstance(tensor, Parameter)
        return ParameterProxy(self, read.node, name, cast(Parameter, tensor)) if sized else read

    def _name_of(self, tensor: Tensor) -> str:
        """Return the qualified name of a tensor; a new one for a constant that the code uses for the first time."""
        if id(tensor) not in self._paths:
            name = self.get_fresh_qualname("_tensor_constant")
            self._paths[id(tensor)] = name
            self._constants[name] = tensor
        return self._paths[id(tensor)]

    @generator_block
    def module_scope(self, module: Module) -> Iterator[None]:
        """Record a call of a module in the metadata of nodes within the block; "path@1" is the key of the second."""
        path, kind = self.path_of_module(module), type(module)
        number = self._calls[path] = self._calls.get(path, -1) + 1
        key = f"{path}@{number}" if number else path
        with ScopeContextManager(self.scope, Scope(path, kind)):
            self.module_stack[key] = path, kind
            try:
                yield
            finally:
                del self.module_stack[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tracer":
        """Return a copy with a copy of the graph; autowrapped modules and functions are shared."""
        copied = memo[id(self)] = type(self).__new__(type(self))
        for name, value in vars(self).items():
            setattr(copied, name, value if name == "_autowrapped" else copy.deepcopy(value, memo))
        return copied


_IS_TRACING: ContextVar[bool] = ContextVar("is_tracing", default=False)


def is_fx_tracing() -> bool:
    """Return whether a `Tracer` runs the current code."""
    return _IS_TRACING.get()


@generator_block
def _set_is_tracing() -> Iterator[None]:
    token = _IS_TRACING.set(True)
    try:
        yield
    finally:
        _IS_TRACING.reset(token)


@generator_block
def _intercept_modules(root: Module, tracer: Tracer) -> Iterator[None]:
    """Within the block, the tracer handles calls of submodules of `root`, and reads of their tensors.

    For that time each submodule has its own class, a subclass of its former one.
    """
    # Python looks up `__call__` and `__getattribute__` in the class, so each module gets another class.
    modules = list(root.modules())
    classes = [type(module) for module in modules]
    subclasses = {cls: _intercepting_class(cls, tracer) for cls in dict.fromkeys(classes)}
    try:
        for module in modules:
            _set_class(module, subclasses[type(module)])
        yield
    finally:
        for module, cls in zip(modules, classes, strict=True):
            _set_class(module, cls)


def _set_class(module: Module, cls: type) -> None:
    object.__setattr__(module, "__class__", cls)


@generator_block
def _as_class(module: Module, cls: type) -> Iterator[None]:
    """Give a module another class within the block."""
    previous = type(module)
    _set_class(module, cls)
    try:
        yield
    finally:
        _set_class(module, previous)


def _intercepting_class(base: Any, tracer: Tracer) -> type:
    """Return a subclass of `base` that asks the tracer for results of calls, and for parameters and buffers."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        def forward(*args: Any, **kwargs: Any) -> Any:
            with _as_class(self, intercepting):
                return base.__call__(self, *args, **kwargs)

        # A tracer decides by the module's own class, often by `type(module) is ...`.
        with _as_class(self, base):
            return tracer.call_module(self, forward, args, kwargs)

    def attribute(self: Any, name: str) -> Any:
        value = base.__getattribute__(self, name)
        registered = not name.startswith("__") and name in vars(self).get("_kinds", ())
        return tracer.getattr(name, value, tracer._attributes) if registered else value

    own = {
        "__call__": call,
        "__getattribute__": attribute,
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
    }
    intercepting = type(base.__name__, (base,), own)
    return intercepting
