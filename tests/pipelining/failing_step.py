"""A pipeline of which one stage fails in its backward pass, for `test_uncaught_errors.py`: run over MPI.

With an argument, the script of rank 1 fails before that.
"""

import sys

import retrograd as rg
from retrograd import nn
from retrograd.pipelining import Pipeline


class Failing(rg.autograd.Function):
    """A function whose backward pass fails."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise ValueError("this backward pass fails")


class Model(nn.Module):
    """Three layers, with the function before the last."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        first, second, third = self.layers
        return third(Failing.apply(second(first(x).tanh()).tanh()))


pipeline = Pipeline(Model(), stages=3, micro_batches=3, loss_fn=nn.functional.mse_loss, transport="auto")
if sys.argv[1:] and pipeline.rank == 1:
    raise ValueError("this script fails")
pipeline.step(rg.ones(6, 4), target=rg.zeros(6, 4))
