"""A module that runs a graph."""

import copy
import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping
from types import MethodType, TracebackType
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.source_location import LINES
from retrograd.fx.codegen import PythonCode
from retrograd.fx.graph import Graph
from retrograd.fx.graph_hooks import GraphHooks
from retrograd.fx.lint import find_attribute
from retrograd.fx.traced_writes import get_or_add_submodule, mutated_tensors
from retrograd.nn.members import all_attributes
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter


class GraphModule(GraphHooks, Module):
    """A module whose `forward` is the code of a graph.

    It takes from `root` the parameters, buffers and constants that the graph reads, and those named in
    `keep`: the same objects under the same qualified names.  Running it calls operators, so it is differentiable
    and can be traced again.  The training mode of dropout is fixed when the graph is traced: `train()` and
    `eval()` change nothing.

    Submodules that the graph calls are included with all their contents.  `root` may also be a dict from qualified
    names to these objects.  `class_name` is the name under which the module is printed; `meta` is a dict for metadata.
    Raises AttributeError if the module `root` lacks an object that the graph reads, and RuntimeError if a dict does.

    >>> import retrograd as rg
    >>> from retrograd import fx
    >>> module = fx.trace(lambda x: (x * 2).sum(), rg.ones(3))
    >>> module(rg.tensor([1.0, 2.0, 3.0]))
    tensor(12.)
    >>> print(module.graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %mul : [num_users=1] = call_function[target=mul](args = (%x, 2), kwargs = {})
        %sum_1 : [num_users=1] = call_function[target=sum](args = (%mul,), kwargs = {})
        return sum_1
    """

    def __init__(
        self,
        root: Module | Mapping[str, Any],
        graph: Graph,
        class_name: str = "GraphModule",
        *,
        keep: Iterable[str] = (),
    ) -> None:
        if not isinstance(root, (Module, Mapping)):
            raise RuntimeError(f"Unsupported type {root} passed for root! Give a module, or a dict of its attributes.")
        super().__init__()
        self._class_name = class_name
        self.meta: dict[str, Any] = {}
        self._clear_hooks()
        names = [*keep, *_targets_read(graph)]
        _copy_attributes(self, root if isinstance(root, Module) else _module_from_dict(root, names), names)
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph. After changing it in place, call `recompile()`; assigning another one does so."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"GraphModule.graph: Expected a Graph instance, but got {type(graph)}")
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of the generated function."""
        return self._code.src

    @property
    def _lineno_map(self) -> dict[int, int | None] | None:
        """The index of the node of each line of the code; lines are counted from that of `def`, which is 0."""
        return self._code._lineno_map

    @property
    def _prologue_start(self) -> int:
        """The number of the line of `def` in the code."""
        return self._code._prologue_start

    def recompile(self) -> PythonCode:
        """Generate the code from the graph again, and return it."""
        self._code = self._graph.python_code()
        self._parameter_names = _argument_names(self._graph)
        self.__signature__ = self._call_signature()  # the result of inspect.signature(module)
        return self._code

    def _call_signature(self) -> inspect.Signature:
        if self._graph.signature is not None:
            return self._graph.signature.parameters
        return self.flat_signature

    @property
    def flat_signature(self) -> inspect.Signature:
        """The parameters of `flat_forward`, by their names in the traced code."""
        names = {name: target for target, name in self._parameter_names.items()}
        found = inspect.signature(self.flat_forward).parameters.values()
        return inspect.Signature([p.replace(name=names.get(p.name, p.name)) for p in found])

    @property
    def flat_forward(self) -> Callable:
        """The generated function, which takes a value for each placeholder."""
        return MethodType(self._code.function, self)

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a module under a qualified name; return False if a parent is no module."""
        *path, name = target.split(".")
        place: Any = self
        for part in path:
            place = vars(place).get(part, place) if not hasattr(place, part) else getattr(place, part)
            if not isinstance(place, Module):
                return False
        get_or_add_submodule(self, ".".join(path)).add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete the module of a qualified name; return False if there is none."""
        if not target or target not in dict(self.named_modules()):
            return False
        path, _, name = target.rpartition(".")
        delattr(self.get_submodule(path), name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete all modules that the graph neither calls nor reads from."""
        used: set[str] = set()
        called = [str(node.target) for node in self._graph.find_nodes(op="call_module")]
        for target in _targets_read(self._graph):
            parts = target.split(".")
            used.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
        for name in [name for name, _ in self.named_modules(remove_duplicate=False)]:
            if name and name not in used and not any(name.startswith(f"{target}.") for target in called):
                self.delete_submodule(name)

    def print_readable(self, print_output: bool = True) -> str:
        """Return the code as a class, with the classes of graph modules that it calls; print it too by default."""
        inner = [m.print_readable(False).rstrip() for m in self.children() if isinstance(m, GraphModule)]
        body = "\n\n".join([self.code.rstrip(), *inner]).replace("\n", "\n    ")
        text = "\n".join(line.rstrip() for line in f"class {self._get_name()}(Module):\n    {body}".split("\n"))
        if print_output:
            print(text)
        return text

    def _get_name(self) -> str:
        return self._class_name

    def __str__(self) -> str:
        return f"{super().__str__()}\n\n{self.code}"

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph on arguments like those that it was traced with.

        Raises ValueError if their structure, shapes, dtypes or constants differ, and RuntimeError if a
        value that the traced code read, as in `if x.sum() > 0`, has changed: see `Graph.guards`.
        """
        signature = self._graph.signature
        if signature is None:
            return self._run(args, kwargs)
        inputs = signature.flatten(args, kwargs)
        return signature.finish(self._run(inputs, {}), inputs, self)

    def _run(self, args: Iterable, kwargs: dict[str, Any]) -> Any:
        try:
            named = {self._parameter_names.get(name, name): value for name, value in kwargs.items()}
            return self._code.function(self, *args, **named)
        except Exception as error:
            place = _user_line(error.__traceback__)
            if place:
                error.add_note(f"while running a graph, at an operator that was traced at {place}")
            raise

    def __reduce__(self) -> tuple:
        # Submodules that the graph does not use are kept too: a pass may have added them for later.
        names = [*tensor_names(self), *dict(self.named_children())]
        others = {name: value for name, value in all_attributes(self).items() if name not in (*self._kinds, *_DERIVED)}
        return _rebuild, (extract(self, [*names, *_targets_read(self._graph)]), self._graph, names), others

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        make, args, others = self.__reduce__()
        copied = memo[id(self)] = make(*copy.deepcopy(args, memo))
        vars(copied).update(copy.deepcopy(others, memo))
        for hook in copied._deepcopy_hooks:
            hook(copied)
        return copied

    def __copy__(self) -> Any:
        make, args, others = self.__reduce__()
        copied = make(*args)
        vars(copied).update(others)
        return copied


def _rebuild(root: Module, graph: Graph, keep: list[str]) -> GraphModule:
    return GraphModule(root, graph, keep=keep)


# Attributes that are derived from the root and the graph, so they are not stored.
_DERIVED = ("_kinds", "_graph", "_code", "_parameter_names", "__signature__")


def _argument_names(graph: Graph) -> dict[str, str]:
    """Return the code's names of inputs, by the different names that callers use."""
    inputs = [(str(n.target).lstrip("*"), n.name) for n in graph.find_nodes(op="placeholder")]
    targets = [target for target, _ in inputs]
    plain = {t for t in targets if t.isidentifier() and not keyword.iskeyword(t) and targets.count(t) == 1}
    return {target: name for target, name in inputs if target != name and target in plain - {"self"}}


def tensor_names(root: Module) -> list[str]:
    """Return the qualified names of all parameters and buffers, in the order of the state dict."""
    names = []
    for path, module in root.named_modules(remove_duplicate=False):
        own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        names += [f"{path}.{name}" if path else name for name, _ in own]
    return names


def tensors_and_modules(root: Module) -> list[tuple[str, Any]]:
    """Return submodules, parameters, buffers and other tensor attributes, by qualified name."""
    found: list[tuple[str, Any]] = []
    for path, module in root.named_modules(remove_duplicate=False):
        found += [(path, module)] if path else []
        names = [name for name, value in all_attributes(module).items() if isinstance(value, Tensor)]
        found += [(f"{path}.{name}" if path else name, getattr(module, name)) for name in names]
    return found


def extract(root: Module, names: Iterable[str]) -> Module:
    """Return a bare module with the attributes that `root` has under these qualified names."""
    home = Module()
    _copy_attributes(home, root, names)
    return home


def _targets_read(graph: Graph) -> list[str]:
    """Return the qualified names that the graph reads or writes."""
    read = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
    return [*read, *mutated_tensors(graph.signature)]


def _module_from_dict(values: Mapping[str, Any], names: Iterable[str]) -> Module:
    """Return a bare module with these values under their qualified names."""
    home = Module()
    for target, value in sorted(values.items(), key=lambda item: item[0].count(".")):
        path, _, name = target.rpartition(".")
        setattr(get_or_add_submodule(home, path), name, value)
    for name in names:
        if find_attribute(home, name) is None:
            raise RuntimeError(f"the graph referenced target {name} but that target was not provided in ``root``!")
    return home


def _copy_attributes(home: Module, root: Module, names: Iterable[str]) -> None:
    for name in dict.fromkeys(names):
        _copy_attribute(home, root, name)
    home.training = root.training


def _copy_attribute(home: Module, root: Module, target: str) -> None:
    """Copy a parameter, buffer, constant or submodule of `root` to `home`, by qualified name."""
    path, _, name = target.rpartition(".")
    owner, place = root.get_submodule(path), get_or_add_submodule(home, path)
    value = getattr(owner, name)
    if place is owner:  # contained in a submodule that was adopted already
        return
    if isinstance(value, Parameter):
        place.register_parameter(name, value)
    elif name in dict(owner.named_buffers(recurse=False)):
        place.register_buffer(name, value, persistent=name in owner.state_dict(keep_vars=True))
    else:
        setattr(place, name, value)


def _user_line(traceback: TracebackType | None) -> str:
    """Return the user's line from which the innermost generated line of a traceback was traced."""
    place = ""
    while traceback is not None:
        place = traceback.tb_frame.f_globals.get(LINES, {}).get(traceback.tb_lineno, place)
        traceback = traceback.tb_next
    return place
