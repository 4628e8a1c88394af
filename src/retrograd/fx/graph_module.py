"""A module that runs a graph."""

import inspect
from collections.abc import Iterable
from types import MethodType, TracebackType
from typing import Any

from retrograd.core.source import LINES
from retrograd.fx.graph import Graph
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter


class GraphModule(Module):
    """A module whose `forward` is the code of a graph.

    It takes from `root` the parameters, buffers and constants that the graph reads, and those named in
    `keep`: the same objects under the same qualified names.  Running it calls operators, so it differentiates
    and can be traced again.  Whether dropout is active was decided when the graph was traced: `train()` and
    `eval()` change nothing.

    Raises AttributeError where root lacks what the graph reads.

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

    def __init__(self, root: Module, graph: Graph, keep: Iterable[str] = ()) -> None:
        super().__init__()
        _adopt_all(self, root, [*keep, *_read_by(graph)])
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph that runs.  After changing it in place, call `recompile()`; assigning another does so."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self._graph = graph
        self.recompile()

    @property
    def code(self) -> str:
        """The source of the function that runs."""
        return self._code.src

    def recompile(self) -> None:
        """Make the code anew from the graph."""
        self._code = self._graph.python_code()
        self._function = self._code.compile()
        self.__signature__ = self._parameters()  # what inspect.signature(module) answers

    def _parameters(self) -> inspect.Signature:
        if self._graph.signature is not None:
            return self._graph.signature.parameters
        return inspect.signature(MethodType(self._function, self))

    def print_readable(self) -> None:
        """Print the code as that of a class."""
        print(f"class {type(self).__name__}(Module):\n    " + self.code.rstrip().replace("\n", "\n    "))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph on arguments like those that it was traced with.

        Raises ValueError if their structure, shapes, dtypes or constants are others, and RuntimeError if a
        value that the traced code read, as in `if x.sum() > 0`, has changed: see `Graph.guards`.
        """
        signature = self._graph.signature
        if signature is None:
            return self._run(args, kwargs)
        return signature.restore(self._run(signature.flatten(args, kwargs), {}))

    def _run(self, args: Iterable, kwargs: dict[str, Any]) -> Any:
        try:
            return self._function(self, *args, **kwargs)
        except Exception as error:
            place = _user_line(error.__traceback__)
            if place:
                error.add_note(f"while running a graph, at what was made at {place}")
            raise

    def __reduce__(self) -> tuple:
        names = tensor_names(self)
        return GraphModule, (extract(self, [*names, *_read_by(self._graph)]), self._graph, names)


def tensor_names(root: Module) -> list[str]:
    """The qualified names of all parameters and buffers, in the order of the state dict."""
    names = []
    for path, module in root.named_modules(remove_duplicate=False):
        own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        names += [f"{path}.{name}" if path else name for name, _ in own]
    return names


def extract(root: Module, names: Iterable[str]) -> Module:
    """A bare module with what `root` has under these qualified names."""
    home = Module()
    _adopt_all(home, root, names)
    return home


def _read_by(graph: Graph) -> list[str]:
    return [str(node.target) for node in graph.find_nodes(op="get_attr")]


def _adopt_all(home: Module, root: Module, names: Iterable[str]) -> None:
    for name in dict.fromkeys(names):
        _adopt(home, root, name)
    home.training = root.training


def _adopt(home: Module, root: Module, target: str) -> None:
    """Give `home` the parameter, buffer or constant that `root` has under a qualified name."""
    path, _, name = target.rpartition(".")
    owner, place = root.get_submodule(path), _submodule(home, path)
    value = getattr(owner, name)
    if isinstance(value, Parameter):
        place.register_parameter(name, value)
    elif name in dict(owner.named_buffers(recurse=False)):
        place.register_buffer(name, value, persistent=name in owner.state_dict(keep_vars=True))
    else:
        setattr(place, name, value)


def _submodule(home: Module, path: str) -> Module:
    """The submodule of that qualified name, with those on the way made where there are none."""
    for name in path.split(".") if path else ():
        if name not in dict(home.named_children()):
            home.add_module(name, Module())
        home = home.get_submodule(name)
    return home


def _user_line(traceback: TracebackType | None) -> str:
    """The user's line that the innermost generated line in a traceback was made from."""
    place = ""
    while traceback is not None:
        place = traceback.tb_frame.f_globals.get(LINES, {}).get(traceback.tb_lineno, place)
        traceback = traceback.tb_next
    return place
