"""Parity cases of the order of computations per rank, for the schedules that both libraries have."""

import torch

from .common import pp


class Stage:
    """A stage of PyTorch's that records the calls it gets; nothing is sent or received."""

    is_last = False

    def __init__(self, index):
        self.stage_index = index
        self.done = []

    def forward_one_chunk(self, micro_batch, *args, **kwargs):
        self.done.append(f"F{micro_batch}")

    def backward_one_chunk(self, micro_batch, **kwargs):
        self.done.append(f"B{micro_batch}")

    def __getattr__(self, name):
        return lambda *args: []


def order(name, stages, micro_batches):
    """Return the computations of every rank."""

    def case(m):
        if m is not torch:
            ranks = pp(m).make_schedule(name, stages, micro_batches)
            return [[f"{action.kind}{action.micro_batch}" for action in rank] for rank in ranks]
        kind = torch.distributed.pipelining.schedules.get_schedule_class(name)
        return [run(kind, rank, stages, micro_batches) for rank in range(stages)]

    return case


def run(kind, rank, stages, micro_batches):
    """Run one rank of PyTorch's schedule, without the process group that its constructor requires."""
    schedule = object.__new__(kind)
    stage = Stage(rank)
    vars(schedule).update(_stage=stage, _num_stages=stages, _n_microbatches=micro_batches, scale_grads=False)
    vars(schedule).update(_internal_losses=[], _loss_fn=None, _initialize_stage=lambda *args: None)
    schedule._step_microbatches()
    return stage.done


def found(name):
    """Return whether a schedule has the name, and the error if none has."""
    return lambda m: (
        (torch.distributed.pipelining.schedules.get_schedule_class(name) if m is torch else pp(m).get_schedule(name))
        is not None
    )


ORDERS = {
    f"{name} {stages} {micro_batches}": order(name, stages, micro_batches)
    for name in ("gpipe", "1f1b")
    for stages, micro_batches in ((1, 1), (1, 4), (2, 2), (2, 5), (3, 3), (4, 8), (4, 2))
}

NAMES = {name: found(name) for name in ("GPipe", "gpipe", "1F1B", "1f1b", "nine")}
