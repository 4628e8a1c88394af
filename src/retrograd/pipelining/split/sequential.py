"""A sequential model with each module as a stage."""

from typing import Any

from retrograd.nn import Sequential
from retrograd.pipelining.split.markers import pipe_split


class PipeSequential(Sequential):
    """A `Sequential` with a stage boundary between every two modules.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import pipeline
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.ReLU(), rg.nn.Linear(8, 2))
    >>> pipeline(PipeSequential.from_sequential(model), (rg.ones(3, 4),)).num_stages
    3
    """

    @staticmethod
    def from_sequential(sequential_instance: Sequential) -> "PipeSequential":
        """Return the same modules, under the same names, with boundaries between them."""
        return PipeSequential(dict(sequential_instance._members("module")))

    def forward(self, input: Any) -> Any:
        """Run the modules in order."""
        for number, module in enumerate(self._entries()):
            if number:
                pipe_split()
            input = module(input)
        return input
