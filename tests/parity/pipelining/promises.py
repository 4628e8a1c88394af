"""A script for torch.distributed.pipelining with the promises of its reference: every rank runs it.

`promises.py RESULTS` writes what each case found on each rank, as JSON.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    _PipelineScheduleRuntime,
    get_schedule_class,
)

WIDTH, BATCH, MICROBATCHES = 4, 8, 4


def values(*shape, seed=0):
    count = 1
    for size in shape:
        count *= size
    return torch.tensor([((7 * i + 3 * seed + 1) % 11 - 5) / 6 for i in range(count)]).reshape(shape)


def filled(module, seed):
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(values(*parameter.shape, seed=seed + number))
    return module


class Part(nn.Module):
    """A layer that scales its input by a keyword argument, if there is one."""

    def __init__(self, index):
        super().__init__()
        self.layer = filled(nn.Linear(WIDTH, WIDTH), index)

    def forward(self, x, scale=None):
        x = x if scale is None else x * scale
        return self.layer(x).tanh()


class Pair(nn.Module):
    """A stage with two inputs and two results."""

    def __init__(self, index, last):
        super().__init__()
        self.layer, self.last = filled(nn.Linear(WIDTH, WIDTH), index), last

    def forward(self, x, y=None):
        y = x if y is None else y
        a = self.layer(x)
        return a + y if self.last else (a, x * y)


class Postponed(torch.autograd.Function):
    """x @ w, whose gradient with respect to w is computed when `waiting` is played."""

    waiting = []  # noqa: RUF012

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        kept = x.detach().clone(), g.detach().clone()  # PyTorch receives later microbatches in the same memory

        def weights():
            found = kept[0].t() @ kept[1]
            w.grad = found if w.grad is None else w.grad + found

        Postponed.waiting.append(weights)
        return g @ w.t(), None


class WithPostponedWeights(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.w = nn.Parameter(values(WIDTH, WIDTH, seed=index))

    def forward(self, x):
        return Postponed.apply(x, self.w).tanh()

    def play(self):
        waiting, Postponed.waiting = Postponed.waiting, []
        return lambda: [weights() for weights in waiting]


def squared(output, target):
    return ((output - target) ** 2).mean()


def summed(output, target):
    return ((output - target) ** 2).sum()


def gradients(*stages):
    return {
        f"{stage.stage_index} {name}": [round(v, 5) for v in p.grad.flatten().tolist()]
        for stage in stages
        for name, p in stage.submod.named_parameters()
        if p.grad is not None
    }


class Case:
    """What a case needs: this rank, the number of ranks, inputs and targets."""

    def __init__(self, rank, ranks):
        self.rank, self.ranks = rank, ranks
        self.x, self.y = values(BATCH, WIDTH, seed=3), values(BATCH, WIDTH, seed=5)

    def stages(self, make, several=False):
        indices = [self.rank, self.rank + self.ranks] if several else [self.rank]
        count = self.ranks * len(indices)
        return [PipelineStage(make(i), i, count, torch.device("cpu")) for i in indices]

    def run(self, schedule, method="step", **first):
        """Run a step or an evaluation; return the losses and the output of the rank that has them."""
        losses: list = []
        run = getattr(schedule, method)
        out = run(self.x, **first) if self.rank == 0 else run(target=self.y, losses=losses)
        found = [round(loss.item(), 5) for loss in losses]
        return found, None if out is None else [round(v, 5) for v in out.flatten().tolist()]


def keyword_arguments(case):
    [stage] = case.stages(Part)
    schedule = ScheduleGPipe(stage, MICROBATCHES, loss_fn=squared)
    return case.run(schedule, scale=values(BATCH, 1, seed=7)), gradients(stage)


def two_steps(case):
    [stage] = case.stages(Part)
    schedule = Schedule1F1B(stage, MICROBATCHES, loss_fn=summed, scale_grads=False)
    return case.run(schedule), case.run(schedule), gradients(stage)


def scaled(case):
    [stage] = case.stages(Part)
    return case.run(Schedule1F1B(stage, MICROBATCHES, loss_fn=summed)), gradients(stage)


def evaluated(case):
    [stage] = case.stages(Part)
    schedule = ScheduleGPipe(stage, MICROBATCHES, loss_fn=squared)
    return case.run(schedule, "eval"), gradients(stage)


def several_results(case):
    [stage] = case.stages(lambda i: Pair(i, i == case.ranks - 1))
    return case.run(ScheduleGPipe(stage, MICROBATCHES, loss_fn=squared)), gradients(stage)


def interleaved(case):
    stages = case.stages(Part, several=True)
    schedule = ScheduleInterleaved1F1B(stages, MICROBATCHES, loss_fn=squared)
    return case.run(schedule), gradients(*stages), str(schedule.pipeline_order)


HALVES = "0F0,0F1,0F2,0F3,0I0,0W0,0I1,0I2,0W1,0W2,0I3,0W3\n1F0,1I0,1W0,1F1,1F2,1I1,1I2,1W1,1W2,1F3,1I3,1W3\n"
MIXED = "0F0,0F1,0F2,0F3,0I0,0W0,0I1,0I2,0W1,0W2,0B3\n1F0,1B0,1F1,1F2,1B1,1B2,1F3,1I3,1W3\n"


def loaded(case, stages, order):
    """Return the schedule of an order, read from a file."""
    path = f"{sys.argv[1]}.{case.rank}.csv"
    with open(path, "w") as file:
        file.write(order)
    schedule = _PipelineScheduleRuntime(stages, MICROBATCHES, loss_fn=squared)
    schedule._load_csv(path, format="compute_only")
    return schedule


def postponed_weights(case):
    module, device = WithPostponedWeights(case.rank), torch.device("cpu")
    stage = PipelineStage(module, case.rank, case.ranks, device, dw_builder=module.play)
    return case.run(loaded(case, [stage], HALVES)), gradients(stage)


def order_of_a_file(case):
    stages = case.stages(Part)
    return case.run(loaded(case, stages, MIXED)), gradients(*stages)


def dumped_orders(case):
    found = {}
    for name in ("Interleaved1F1B", "InterleavedZeroBubble"):
        schedule = get_schedule_class(name)(case.stages(Part, several=True), MICROBATCHES, loss_fn=squared)
        path = f"{sys.argv[1]}.{name}.{case.rank}.csv"
        for form in ("compute_only", "compute_comms"):
            schedule._dump_csv(path, format=form)
            with open(path) as file:
                found[f"{name} {form}"] = file.read().split()
    return found


CASES = (keyword_arguments, two_steps, scaled, evaluated, several_results, interleaved, postponed_weights,
         order_of_a_file, dumped_orders)  # fmt: skip

if __name__ == "__main__":
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(backend="gloo", rank=rank, world_size=ranks)
    results = {}
    for run in CASES:
        results[run.__name__] = run(Case(rank, ranks))
        dist.barrier()
    with open(f"{sys.argv[1]}.{rank}", "w") as file:
        json.dump(results, file)
    dist.destroy_process_group()
