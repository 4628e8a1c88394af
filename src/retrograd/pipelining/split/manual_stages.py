"""Stages split by the user: modules called in sequence, without capturing."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import optree

from retrograd import autograd
from retrograd.nn import Module
from retrograd.pipelining.runtime.stage import Value
from retrograd.pipelining.sequence_segments import probing_segments
from retrograd.pipelining.split.pipe import Pipe
from retrograd.pipelining.split.pipe_stage import PipeStage, Ports, carried_by

INPUT = "input_{}"
VALUE = "stage_{}_{}"


class ManualPipe:
    """Modules as the stages of a pipeline: each is called with the result of the previous one.

    A tuple is passed as several arguments; tensors may be nested in tuples, lists and dicts.  The modules may run any
    code, including NumPy and other libraries.  One run without gradients on the given arguments determines the number
    and nesting of values.

    Raises ValueError for an empty list.

    >>> import retrograd as rg
    >>> pipe = ManualPipe([rg.nn.Linear(4, 8), rg.nn.Linear(8, 2)], (rg.ones(3, 4),), {})
    >>> pipe.num_stages, pipe.carried()
    (2, {(0, 1): ['stage_0_0']})
    """

    loss_name = None
    knows_sizes = False
    captured = None

    def __init__(self, modules: Sequence[Module], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if not modules:
            raise ValueError("Pipeline: a list of stages must have at least one module")
        leaves, self._arguments = _flatten(args, kwargs)
        inputs = tuple(Value(INPUT.format(index), None) for index in range(len(leaves)))
        spec: Any = self._arguments
        parts: list[tuple[_Part, tuple[Value, ...], tuple[str, ...]]] = []
        for index, module in enumerate(modules):
            part = _Part(module, spec, is_first=index == 0)
            with autograd.no_grad(), probing_segments():
                leaves = list(part(*leaves))
            names = tuple(VALUE.format(index, position) for position in range(len(leaves)))
            parts.append((part, inputs, names))
            inputs, spec = tuple(Value(name, index) for name in names), part.returned
        edges = carried_by([inputs for _, inputs, _ in parts])
        self.stages = [
            PipeStage(part, index, len(parts), {True: Ports(inputs, names, edges)})
            for index, (part, inputs, names) in enumerate(parts)
        ]
        self._result = spec

    @property
    def num_stages(self) -> int:
        """Return the number of stages."""
        return len(self.stages)

    def carried(self) -> dict[tuple[int, int], list[str]]:
        """Return the values that each stage passes to the next."""
        return {edge: list(names) for edge, names in self.stages[0].carried().items()}

    def named_inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments' leaves by name; ValueError for another nesting."""
        leaves, spec = _flatten(args, kwargs)
        if spec != self._arguments:
            raise ValueError(
                f"Pipeline: the arguments are nested as {spec}, but the first ones were nested as {self._arguments}"
            )
        return {INPUT.format(index): leaf for index, leaf in enumerate(leaves)}

    def restored_output(self, values: Mapping[str, Any]) -> Any:
        """Return the last module's result, from its leaves by name."""
        return self._result.unflatten([values[name] for name in self.stages[-1].outputs])


AnyPipe = Pipe | ManualPipe


def stages_of(pipes: Iterable[AnyPipe]) -> list[PipeStage]:
    """Return the stages of several pipes."""
    return [stage for pipe in pipes for stage in pipe.stages]


def _flatten(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], Any]:
    arguments: Any = (tuple(args), dict(kwargs))
    return optree.tree_flatten(arguments, none_is_leaf=True)


class _Part(Module):
    """A user's module as a function from leaves to leaves."""

    def __init__(self, module: Module, spec: Any, is_first: bool) -> None:
        super().__init__()
        self.module = module
        self.returned: Any = None
        self._spec = spec
        self._is_first = is_first

    def forward(self, *leaves: Any) -> tuple[Any, ...]:
        """Call the module; ValueError if the nesting of its results has changed."""
        given: Any = self._spec.unflatten(leaves)
        args, kwargs = given if self._is_first else (given if isinstance(given, tuple) else (given,), {})
        found, spec = optree.tree_flatten(self.module(*args, **kwargs), none_is_leaf=True)
        if self.returned is None:
            self.returned = spec
        if self.returned != spec:
            raise ValueError(f"the stage returned values nested as {self.returned} before, and now as {spec}")
        return tuple(found)
