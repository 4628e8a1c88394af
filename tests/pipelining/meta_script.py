"""Train models that no process has whole, over two meshes, and print the differences from the whole model.

retrograd run -n 4 meta_script.py FOLDER
"""

import json
import sys
import traceback
from pathlib import Path

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import cross_entropy
from retrograd.pipelining import Pipeline
from retrograd.pipelining.checkpoint import Checkpoints, manifest

STAGES = 4


class Model(nn.Module):
    """A model with dropout, a weight of the first and the last stage, a frozen one, and buffers that change."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 8)
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(6)])
        self.norm = nn.LayerNorm(8, elementwise_affine=True)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(8, 7)
        self.out.weight = self.embed.weight
        self.norm.bias.requires_grad_(False)

    def forward(self, ids):
        h = self.embed(ids) + rg.arange(8) / 8
        for layer in self.layers:
            h = self.dropout(layer(h).tanh())
        return self.out(self.norm(h))


def on_meta():
    """Return the model by its shapes."""
    with rg.device("meta"):
        return Model()


def batch(step, rows=8):
    """Return the data of a step."""
    source = rg.Generator().manual_seed(step)
    return rg.randint(7, (rows,), generator=source), rg.randint(7, (rows,), generator=source)


class Training:
    """A model in parts, and its optimizer; replicas 0: whole, without a pipeline."""

    def __init__(self, replicas):
        rg.manual_seed(0)
        self.model = on_meta()
        self.optimizer = rg.optim.AdamW(self.model.parameters(), lr=0.1)
        if replicas:
            options = {"replicas": replicas, "micro_batches": 4, "loss_fn": cross_entropy}
            self.pipeline = Pipeline(self.model, STAGES, **options)
            self.pipeline.materialize(batch(0)[0])
        else:
            nn.utils.materialize(self.model)
            self.pipeline = None

    def step(self, number, rows=8):
        """Return the loss of a step."""
        x, y = batch(number, rows)
        if self.pipeline is None:
            loss = cross_entropy(self.model(x), y)
            loss.backward()
        else:
            loss = self.pipeline.step(x, target=y)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def own(self):
        """Return the bytes of parameters and buffers with memory, and those of all."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        return sum(x.nbytes for x in tensors if x.device == "cpu"), sum(x.nbytes for x in tensors)


def check(folder, replicas):
    """Check a mesh; raise AssertionError if it differs from the whole model."""
    whole = Training(0)
    expected = [whole.step(number, rows) for number, rows in ((0, 8), (1, 8), (2, 12), (3, 8))]
    first = Training(replicas)
    losses = [first.step(0), first.step(1)]
    Checkpoints(folder).save(1, first.pipeline, first.optimizer)
    resumed = Training(replicas)
    read, load_file = [], manifest.load_file

    def counting(path, **options):
        found = load_file(path, **options)
        read.extend(x.nbytes for x in found.values())
        return found

    manifest.load_file = counting
    assert Checkpoints(folder).restore(resumed.pipeline, resumed.optimizer).step == 1
    manifest.load_file = load_file
    losses += [resumed.step(2, 12), resumed.step(3)]
    assert all(abs(a - b) < 1e-5 for a, b in zip(losses, expected, strict=True)), (losses, expected)
    own, total = resumed.own()
    state = resumed.optimizer.state
    moments = sum(x.nbytes for p in state for x in state[p].values() if isinstance(x, rg.Tensor))
    assert own < total
    assert all(p.device == "cpu" for p in state)
    assert abs(sum(read) - own - moments) <= 8 * len(state), (sum(read), own, moments)
    per_rank = resumed.pipeline.on_ranks(lambda rank: own)
    shared = whole.model.embed.weight.nbytes
    assert sum(per_rank) == replicas * (total + shared), (per_rank, total)  # the tied weight is on two stages


if __name__ == "__main__":
    problems = []
    for replicas in (1, 2):
        try:
            check(Path(sys.argv[1]) / str(replicas), replicas)
        except Exception:
            problems.append(traceback.format_exc())
            break
    every = Pipeline(nn.Linear(1, 1))._transport
    found = every.launch(4, lambda link: json.dumps(problems))
    if every.local[0] == 0:
        print(json.dumps([json.loads(text) for text in found]))
