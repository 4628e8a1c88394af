"""A script for torch.distributed.pipelining, in the style of its tutorials: every rank runs it.

`tutorial.py RESULTS SCHEDULE...` trains a model by each schedule and writes the losses of the last rank as JSON.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, SplitPoint, pipeline
from torch.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class

VSHAPED = ("ZBVZeroBubble", "DualPipeV")
BATCH, MICROBATCHES, WIDTH, CLASSES, STEPS = 8, 4, 6, 5, 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.first = nn.Linear(WIDTH, 2 * WIDTH)
        self.second = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(self.norm(x))))


class Model(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.embedding = nn.Embedding(CLASSES, WIDTH)
        self.blocks = nn.ModuleDict({str(i): Block() for i in range(blocks)})
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = self.embedding(x) if self.embedding else x
        for block in self.blocks.values():
            x = block(x)
        return self.head(x) if self.head else x


def filled(model):
    """Give every parameter values that depend on its name, for the same weights on all ranks."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.arange(parameter.numel(), dtype=torch.float32)
            parameter.copy_(torch.sin(values * 0.37 + len(name) + sum(map(ord, name)) % 7).reshape(parameter.shape) / 3)
    return model


def stages_by_hand(rank, indices, count, device):
    """Delete from the model what other stages have, as in the tutorial."""
    stages = []
    for index in indices:
        model = filled(Model(count))
        for other in range(count):
            if other != index:
                del model.blocks[str(other)]
        if index != 0:
            model.embedding = None
        if index != count - 1:
            model.head = None
        stages.append(PipelineStage(model, index, count, device))
    return stages


def stages_by_tracing(rank, indices, count, device):
    """Capture the model, and split it before the blocks."""
    model = filled(Model(count))
    example = torch.zeros(BATCH // MICROBATCHES, 3, dtype=torch.int64)
    spec = {f"blocks.{i}": SplitPoint.BEGINNING for i in range(1, count)}
    pipe = pipeline(model, mb_args=(example,), split_spec=spec)
    assert pipe.num_stages == count
    return [pipe.build_stage(index, device) for index in indices]


def loss_fn(output, target):
    return nn.functional.cross_entropy(output.reshape(-1, CLASSES), target.reshape(-1))


def held(name, rank, ranks):
    """Return the stages of a rank, and their number."""
    if name in ("GPipe", "1F1B"):
        return [rank], ranks
    if name in VSHAPED:
        return [rank, 2 * ranks - 1 - rank], 2 * ranks
    return [rank, rank + ranks], 2 * ranks


def train(name, make, rank, ranks, device):
    """Return the losses of all microbatches in each step, and the sum of the outputs, on the rank of the last stage."""
    indices, count = held(name, rank, ranks)
    stages = make(rank, indices, count, device)
    kind = get_schedule_class(name)
    single = issubclass(kind, PipelineScheduleSingle)
    schedule = kind(stages[0] if single else stages, n_microbatches=MICROBATCHES, loss_fn=loss_fn)
    parameters = [p for stage in stages for p in stage.submod.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    x = torch.arange(BATCH * 3).reshape(BATCH, 3) * 7 % CLASSES
    y = (x * x + 1) % CLASSES
    found = []
    for step in range(STEPS + single):  # the last one evaluates, which PyTorch cannot with several stages per rank
        losses = []
        run = schedule.step if step < STEPS else schedule.eval
        optimizer.zero_grad()
        if 0 in indices and count - 1 in indices:
            out = run(x, target=y, losses=losses)
        elif 0 in indices:
            run(x)
        elif count - 1 in indices:
            out = run(target=y, losses=losses)
        else:
            run()
        optimizer.step()
        if losses:
            found.append([loss.item() for loss in losses] + [out.sum().item()])
    return found


if __name__ == "__main__":
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cpu")
    dist.init_process_group(backend="gloo", rank=rank, world_size=ranks)
    assert (dist.get_rank(), dist.get_world_size()) == (rank, ranks)
    results = {}
    for name in sys.argv[2:]:
        results[f"{name} by hand"] = train(name, stages_by_hand, rank, ranks, device)
        dist.barrier()
        if name not in VSHAPED:  # for which PyTorch's captured stages do not find their peers
            results[f"{name} by tracing"] = train(name, stages_by_tracing, rank, ranks, device)
        dist.barrier()
    with open(f"{sys.argv[1]}.{rank}", "w") as file:
        json.dump({name: losses for name, losses in results.items() if losses}, file)
    dist.destroy_process_group()
