"""Pipelines compared with torch.distributed.pipelining: splits, microbatches, whole and split gradients, orders."""

import pytest

import retrograd as rg

from .pipelining import chunks, drawn, gradients, orders, splits
from .programs import assert_agreement, cases, ending

TABLES = {
    "split": splits.SPLITS,
    "pipe": splits.PIPES,
    "refused": splits.REFUSED,
    "chunks": chunks.SPLIT,
    "merge": chunks.MERGE,
    "whole": gradients.WHOLE,
    "halves": gradients.HALVES,
    "outputs": gradients.OUTPUTS,
    "backward": gradients.CORNERS,
    "order": orders.ORDERS,
    "name": orders.NAMES,
}
CASES = cases(TABLES)

ARGUMENTS = "arguments that do not fit are a TypeError, as with Python's functions"
EMPTY = "a mark with no operators before it, or after another mark, makes no stage; PyTorch fails inside its splitting"
WRITES = "a parameter is written by the stage that reads it; PyTorch's pipe lacks the stage"
SPLIT = "what can't be split is a ValueError, raised before anything is split"
FIXED = "weights get their gradients all the same; PyTorch's get none where no input leads to their nodes"

# Where the results differ: the outcome of ours, the kind of error or "answers", and why.
DEVIATIONS: dict[str, tuple[str, str]] = {
    "split: before one and after the one before it": ("answers", EMPTY),
    "split: before the first": ("answers", EMPTY),
    "split: two marks at one place": ("answers", EMPTY),
    "split: a write to a parameter": ("answers", WRITES),
    "split: a module called in two stages": ("answers", "a stage lists a parameter once; PyTorch copies it, as a@1"),
    "split: a branch on a value": ("answers", "what ran is captured, branches included"),
    "pipe: gradients": ("answers", "a pipe is one graph; PyTorch's cuts it between stages"),
    "pipe: too many arguments": ("TypeError", ARGUMENTS),
    "pipe: too few arguments": ("TypeError", ARGUMENTS),
    "chunks: more than examples": ("ValueError", "fewer microbatches than asked for would break the schedule"),
    "chunks: none": ("ValueError", SPLIT),
    "chunks: a dimension that is not there": ("ValueError", SPLIT),
    "chunks: no dimension": ("ValueError", SPLIT),
    "chunks: too few specs": ("ValueError", SPLIT),
    "merge: no dimension": ("ValueError", SPLIT),
    "merge: nothing": ("ValueError", SPLIT),
    **{f"halves: {name}": ("answers", FIXED) for name in gradients.HALVES if "fixed" in name},
    "backward: an output that leads to weights only": ("answers", FIXED),
    "outputs: an index that is not there": ("RuntimeError", "as every failure of a stage"),
    "backward: groups played twice": ("RuntimeError", "which says that they are used up"),
    "backward: what the second half returns": ("answers", "what .grad is then; PyTorch's is what it was before"),
    "backward: an input that is a result": ("answers", "it has its gradient, as in halves"),
    "backward: the outputs after the first half": ("answers", "the caller's tensors stay what they are"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_agrees_with_torch(name):
    assert_agreement(CASES[name], DEVIATIONS.get(name))


def test_every_deviation_is_one_of_a_case():
    assert DEVIATIONS.keys() <= CASES.keys()


@pytest.mark.parametrize("program", [drawn.whole_backward, drawn.halves])
def test_drawn_stages_agree_with_torch(program):
    for seed in range(300):
        assert_agreement(program(seed))


def test_the_drawn_stages_give_answers_and_errors():
    for program in (drawn.whole_backward, drawn.halves):
        found = [isinstance(ending(program(seed), rg), frozenset) for seed in range(100)]
        assert 10 < sum(found) < 60
