"""Pictures of the guides to pipelines and ranks."""

import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from page import run_block
from style import BLUE, COLOURS, GREEN, GREY, ORANGE, PURPLE, drawing, picture

import retrograd as rg
import retrograd.distributed as dist
from retrograd import fx, nn
from retrograd.distributed.fsdp import fully_shard
from retrograd.distributed.optim import ZeroRedundancyOptimizer
from retrograd.nn.tensor_part import local_tensor
from retrograd.pipelining import Pipeline, make_schedule, simulate
from retrograd.pipelining.planning.simulate import unit_cost
from retrograd.pipelining.schedules.lowering import chain
from retrograd.utils.data import DistributedSampler, TensorDataset

KINDS = {"F": BLUE, "B": GREEN, "I": GREEN, "W": PURPLE, "R": ORANGE}


def timeline(axes: Any, schedule: Any, stages: int, title: str) -> None:
    """Draw a simulated schedule: a row per rank, a box per computation with the number of its microbatch."""
    bars: dict[tuple, list] = {}
    for event in simulate(schedule, chain(stages), unit_cost).events:
        action, length = event.action, event.end - event.start
        if action.kind.value in KINDS:
            look = event.rank, KINDS[action.kind.value], 1 if action.stage < len(schedule) else 0.65
            bars.setdefault(look, []).append((event.start, length - 0.08))
            at = event.start + length / 2, event.rank
            axes.text(*at, action.micro_batch, ha="center", va="center", size=7, color="white", clip_on=False)
    for (rank, colour, alpha), spans in bars.items():
        axes.broken_barh(spans, (rank - 0.43, 0.86), color=colour, alpha=alpha, lw=0)
    axes.set(title=title, yticks=range(len(schedule)), ylabel="rank")
    axes.invert_yaxis()
    axes.grid(visible=False)


@picture("schedules", width=6.8, height=4.4, rows=3)
def schedules(axes: Any) -> None:
    end = 0.0
    for part, (name, stages) in zip(axes, (("1f1b", 4), ("zb-h1", 4), ("zbvzerobubble", 8)), strict=True):
        timeline(part, make_schedule(name, stages=stages, micro_batches=6), stages, f"{name}, {stages} stages")
        end = max(end, part.get_xlim()[1] / (stages // 4))
    for part, most in zip(axes, (end, end, 2 * end), strict=True):  # a stage of eight is half of one of four
        part.set_xlim(0, most)
    axes[-1].set_xlabel("time, in forward passes of a stage")


@picture("from_torch_pipelining", width=6.8, height=2.0)
def from_torch_pipelining(axes: Any) -> None:
    timeline(axes, make_schedule("interleaved1f1b", stages=4, micro_batches=6, ranks=2), 4, "")
    axes.set_xlabel("time")


@drawing("pipelining")
def pipelining() -> str:
    graph = run_block("pipelining", "annotate_split_points(blocks")["pipe"].captured.graph
    stages, stage = {}, 0
    for node in list(graph.nodes):
        if node.name.startswith("pipe_split"):
            stage += 1
            graph.erase_node(node)
        stages[node.name] = stage
    return str(fx.draw(graph, lambda node: stages[node.name]))


@picture("tutorial_cluster", height=2.4)
def tutorial_cluster(axes: Any) -> None:
    losses = {}
    for stages in (1, 2):
        names = run_block("tutorial_cluster", "load_digits(return_X_y=True)")
        rg.manual_seed(0)
        model = nn.Sequential(*names["first"], *names["second"], nn.Linear(128, 10))
        for layer in model:
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()
        optimizer = rg.optim.AdamW(model.parameters(), lr=3e-3)
        pipeline = Pipeline(model, stages=stages, micro_batches=4, loss_fn=nn.functional.cross_entropy)
        losses[stages] = []
        for _ in range(40):
            losses[stages].append(pipeline.step(names["images"][360:], target=names["labels"][360:]).item())
            optimizer.step()
            optimizer.zero_grad()
    axes.plot(losses[1], color=BLUE, lw=3.5, alpha=0.5, label="one stage")
    axes.plot(losses[2], "--", color=ORANGE, lw=1.3, label="two stages")
    axes.set(xlabel="step", ylabel="loss")
    axes.legend()


@picture("resume", height=2.4)
def resume(axes: Any) -> None:
    train = run_block("resume", "def train(folder, stages, steps)")["train"]
    rg.manual_seed(0)
    uninterrupted = train(tempfile.mkdtemp(), stages=1, steps=40)
    rg.manual_seed(0)
    folder = tempfile.mkdtemp()
    first, second = train(folder, stages=2, steps=25), train(folder, stages=3, steps=40)
    assert first + second == uninterrupted
    axes.plot(uninterrupted, color=GREY, lw=4, alpha=0.5, label="uninterrupted")
    axes.plot(first, "o-", ms=3, lw=1, color=BLUE, label="two stages, interrupted")
    axes.plot(range(25, 40), second, "o-", ms=3, lw=1, color=ORANGE, label="three stages, resumed")
    axes.set(xlabel="step", ylabel="loss")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


@picture("clusters", height=2.0)
def clusters(axes: Any) -> None:
    dataset = TensorDataset(rg.zeros(64))

    def shares() -> list[list[int]]:
        sampler = DistributedSampler(dataset)
        found = []
        for epoch in range(4):
            sampler.set_epoch(epoch)
            found.append(list(sampler))
        return found

    for rank, epochs in enumerate(dist.run_threads(shares, 4)):
        for epoch, share in enumerate(epochs):
            label = f"rank {rank}" if epoch == 0 else None
            axes.bar(share, 0.86, width=0.8, bottom=epoch - 0.43, color=COLOURS[rank], label=label)
    axes.set(xlabel="example", ylabel="epoch", yticks=range(4), xlim=(-0.6, 63.6))
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


@picture("distributed", width=6.8, height=2.5)
def distributed(axes: Any) -> None:
    def held(kind: str) -> Mapping[str, int]:
        model = nn.Linear(64, 64, bias=False)
        if kind == "fully_shard":
            fully_shard(model)
        if kind.startswith("ZeRO"):
            optimizer: Any = ZeroRedundancyOptimizer(
                model.parameters(), rg.optim.Adam, shard_gradients=kind == "ZeRO 2", lr=0.01
            )
        else:
            optimizer = rg.optim.Adam(model.parameters(), lr=0.01)
        model(rg.ones(2, 64)).sum().backward()
        optimizer.step()
        (state,) = getattr(optimizer, "optim", optimizer).state.values()
        moments, gradient = local_tensor(state["exp_avg"]), local_tensor(model.weight.grad)
        return {
            "parameters": local_tensor(model.weight).numel(),
            "gradients": moments.numel() if gradient is None else gradient.numel(),
            "state of Adam": 2 * moments.numel(),
        }

    kinds = ["replicas", "ZeRO 1", "ZeRO 2", "fully_shard"]
    rows = [dist.run_threads(lambda kind=kind: held(kind), 4)[0] for kind in kinds]
    begin = np.zeros(len(kinds))
    for name, colour in zip(rows[0], (BLUE, ORANGE, GREEN), strict=True):
        lengths = np.array([row[name] for row in rows])
        axes.barh(kinds, lengths, left=begin, color=colour, label=name)
        begin += lengths
    axes.invert_yaxis()
    axes.set_xlabel("elements on one of four ranks, for 4,096 parameters")
    axes.grid(visible=False, axis="y")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
