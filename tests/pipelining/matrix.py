"""Compare pipelines whose ranks are processes with the unsplit model in each: `test_over_processes.py` runs it.

python matrix.py TRANSPORT: in every process; the first rank prints the differences as JSON.
"""

import json
import sys
import traceback

import numpy as np
import pytest

import retrograd as rg
from retrograd import autograd, nn
from retrograd.nn.functional import cross_entropy, mse_loss, scaled_dot_product_attention
from retrograd.nn.utils import clip_grads_with_norm_
from retrograd.optim import SGD, AdamW
from retrograd.pipelining import (
    AutoSchedule,
    Pipeline,
    PipelineError,
    Replicate,
    SegmentCache,
    TensorChunkSpec,
    make_schedule,
    seq1f1b,
    split_segments,
    with_offload,
    with_recomputation,
)
from retrograd.pipelining.schedules import SCHEDULES

RANKS = 2


class Tied(nn.Module):
    """A model whose first and last stage share a weight, with a skip connection, and dropout.

    counting: whether it has a running statistic, too.
    """

    def __init__(self, layers, counting=True):
        super().__init__()
        self.embed = nn.Embedding(7, 6)
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(layers)])
        self.dropout = nn.Dropout(0.3)
        self.counting = counting
        self.seen = nn.Buffer(rg.zeros(6))

    def forward(self, ids):
        h = start = self.embed(ids)
        for layer in self.layers:
            h = self.dropout(layer(h).tanh())
        if self.counting:
            self.seen += h.detach().sum(0)
        return (h + start) @ self.embed.weight.T


def make_model(layers=6, counting=True):
    """Return the same model in every process."""
    rg.manual_seed(0)
    return Tied(layers, counting).to(rg.float64)


def model_for(schedule):
    """Return a model that a schedule, a name or another one, can run: in two directions, none with a statistic."""
    return make_model(counting=schedule not in ("chimera", "dualpipe"))


def data(rows=7):
    """Return the same batch in every process."""
    r = np.random.default_rng(1)
    return rg.tensor(r.integers(0, 7, rows)), rg.tensor(r.integers(0, 7, rows))


def trained(model, step, steps=3):
    """Return losses of steps of gradient descent, and the model's state after them."""
    optimizer, (x, y) = SGD(model.parameters(), lr=0.5), data()
    rg.manual_seed(5)
    losses = []
    for _ in range(steps):
        losses.append(step(x, y).item())
        optimizer.step()
        optimizer.zero_grad()
    return losses, rg.rand(2).tolist()


def unsplit(model):
    """Return the same without a pipeline."""

    def step(x, y):
        loss = cross_entropy(model(x), y)
        loss.backward()
        return loss

    return (*trained(model, step), model)


def check_schedule(transport, name, **options):
    """Check that a pipeline under a schedule trains as the unsplit model does, whatever calls come in between."""
    losses, after, expected = unsplit(model_for(name))
    model = model_for(name)
    pipeline = Pipeline(
        model,
        2 * RANKS,
        schedule=name,
        ranks=RANKS,
        micro_batches=3,
        loss_fn=cross_entropy,
        transport=transport,
        **options,
    )
    found = trained(model, lambda x, y: pipeline.step(x, target=y))
    np.testing.assert_allclose(found[0], losses, rtol=1e-9)
    assert found[1] == after, "other random numbers come next"
    state, wanted = pipeline.state_dict(), expected.state_dict()
    assert list(state) == list(wanted)
    for key, value in state.items():
        np.testing.assert_allclose(value.numpy(), wanted[key].numpy(), rtol=1e-9, atol=1e-12, err_msg=key)
    x, _ = data()
    model.eval(), expected.eval()
    np.testing.assert_allclose(pipeline.predict(x).numpy(), expected(x).detach().numpy(), rtol=1e-9)
    assert len(pipeline.timeline.by_rank()) == RANKS
    assert set(pipeline.homes().values()) == set(range(RANKS))


def check_train_steps(transport, name, ranks=RANKS, replicas=1):
    """Check that several steps at once give the bits of single ones with a check of the gradients' norm."""
    x, y = data()
    found = []
    for way in ("step", "before", "after"):
        model = model_for(name)
        optimizer = AdamW(model.parameters(), lr=0.1)
        sizes = {"ranks": ranks, "replicas": replicas, "micro_batches": 3}
        pipeline = Pipeline(model, 2 * RANKS, schedule=name, loss_fn=cross_entropy, transport=transport, **sizes)
        rg.manual_seed(5)
        if way == "step":
            losses = [clipped_step(pipeline, optimizer, x, y) for _ in range(5)]
        else:
            losses = [
                step.loss.item() for step in pipeline.train_steps([(x, y)] * 5, optimizer, max_norm=1.5, validate=way)
            ]
        state = pipeline.state_dict()
        found.append((losses, {key: value.numpy().tobytes() for key, value in state.items()}))
    assert found[1] == found[0]
    assert found[2] == found[0]


def clipped_step(pipeline, optimizer, x, y):
    """Return the loss of a step whose gradients are clipped by their norm over all ranks."""
    optimizer.zero_grad()
    loss = pipeline.step(x, target=y).item()
    homes, named = pipeline.homes(), dict(pipeline.model.named_parameters())

    def norms_of(rank):
        own = {name: p.grad for name, p in named.items() if homes[name] == rank and p.grad is not None}
        return {name: rg.linalg.vector_norm(gradient) for name, gradient in own.items()}

    norms = {name: norm for part in pipeline.on_ranks(norms_of) for name, norm in part.items()}
    total = rg.linalg.vector_norm(rg.stack([norms[name] for name in named if name in norms]))
    clip_grads_with_norm_(named.values(), 1.5, total)
    optimizer.step()
    return loss


class Branching(nn.Module):
    """A model with a branch on its input, two on parameters, an early result, and a layer that other branches use."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.positive, self.negative = nn.Linear(4, 4), nn.Linear(4, 4)
        self.large = nn.Linear(4, 4)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        h = self.first(x).tanh()
        skip = h
        h = self.positive(h).tanh() + skip if x.sum() > 0 else self.negative(h).tanh()
        if x.abs().max() > 3:
            return h[:, :2] + self.first.bias[:2]  # the last stages have nothing to do
        if self.positive(h).mean() > 0:
            h = self.large(h).tanh() + self.first(h)  # of an earlier stage
        return self.last(h)


def branching_model():
    """Return the same model in every process."""
    rg.manual_seed(11)
    return Branching().to(rg.float64)


def branching_batches(count=4):
    """Yield the same batches in every process, whose rows are of several kinds."""
    r = np.random.default_rng(2)
    for _ in range(count):
        x = r.normal(size=(8, 4))
        x[:2] = abs(x[:2])
        x[2:4] = -abs(x[2:4])
        x[4] += r.choice([0, 5])
        yield rg.tensor(x), rg.tensor(r.normal(size=(8, 2)))


def descend(model):
    """Take a step of gradient descent with the gradients there are."""
    with autograd.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= 0.5 * parameter.grad
                parameter.grad = None


def check_step(pipeline, model, x, y, micro_batches=4):
    """Check that a step of a pipeline has the loss and the gradients of a model, microbatch by microbatch."""
    loss = pipeline.step(x, target=y)
    total = 0.0
    for part, target in zip(x.chunk(micro_batches), y.chunk(micro_batches), strict=True):
        one = mse_loss(model(part), target) / micro_batches
        one.backward()
        total += one.item()
    np.testing.assert_allclose(loss.item(), total, rtol=1e-9)
    homes = pipeline.homes()
    for (name, mine), wanted in zip(pipeline.model.named_parameters(), model.parameters(), strict=True):
        if homes[name] == pipeline.rank or pipeline._transport.local is None:
            assert (mine.grad is None) == (wanted.grad is None), name
            if wanted.grad is not None:
                np.testing.assert_allclose(mine.grad.numpy(), wanted.grad.numpy(), rtol=1e-9, atol=1e-12, err_msg=name)


def check_branches(transport, name):
    """Check that a model whose branches depend on values and parameters trains as without a pipeline."""
    found, expected = branching_model(), branching_model()
    options = {"schedule": name, "ranks": RANKS, "micro_batches": 4, "loss_fn": mse_loss, "transport": transport}
    pipeline = Pipeline(found, 2 * RANKS, **options)
    for x, y in branching_batches():
        check_step(pipeline, expected, x, y)
        descend(found)
        descend(expected)
    taken = {tuple(guard.value for guard in one.guards) for one in pipeline.captures()}
    assert len(taken) == len(pipeline.captures()) > 3
    state = pipeline.state_dict()
    for key, value in expected.state_dict().items():
        np.testing.assert_allclose(state[key].numpy(), value.numpy(), rtol=1e-9, atol=1e-12, err_msg=key)


class Causal(nn.Module):
    """Causal attention with positions, over the segments before and the present one."""

    def __init__(self, width=6):
        super().__init__()
        self.qkv, self.positions = nn.Linear(width, 3 * width), nn.Parameter(rg.randn(16, width))
        self.cache = SegmentCache(dim=1)

    def forward(self, x, start):
        begin, length = int(start), x.shape[1]
        q, k, v = self.qkv(x + self.positions[begin : begin + length]).chunk(3, -1)
        k, v = self.cache(start, k, v)
        every = rg.arange(k.shape[1])
        return x + scaled_dot_product_attention(q, k, v, attn_mask=every <= every[-length:, None]), start


def check_segments(transport):
    """Check that a step with sequences in segments has the loss and the gradients of whole sequences."""
    rg.manual_seed(2)
    stages = [Causal().to(rg.float64) for _ in range(2 * RANKS)]
    x, y = rg.randn(4, 9, 6, dtype=rg.float64), rg.randn(4, 9, 6, dtype=rg.float64)
    value = x, 0
    for stage in stages:
        value = stage(*value)
    expected = mse_loss(value[0], y)
    expected.backward()
    wanted = [{name: p.grad for name, p in stage.named_parameters()} for stage in stages]
    for lengths in ([9], [2, 6, 1]):
        pipeline = Pipeline(
            stages,
            schedule=seq1f1b(2 * RANKS, 2, len(lengths), ranks=RANKS),
            ranks=RANKS,
            micro_batches=2 * len(lengths),
            loss_fn=lambda out, target: mse_loss(out[0], target),
            args_chunk_spec=(TensorChunkSpec(0), Replicate()),
            transport=transport,
        )
        starts = [rg.tensor(sum(lengths[:number])) for number in range(len(lengths))] * 2
        for _ in range(2):
            for stage in stages:
                stage.zero_grad()
            args = list(zip(split_segments(x, 2, lengths), starts, strict=True))
            loss = pipeline.step_microbatches(args, target_mbs=split_segments(y, 2, lengths))
        np.testing.assert_allclose(loss.item(), expected.item(), rtol=1e-12)
        homes = pipeline.homes()
        for number, stage in enumerate(stages):
            for name, p in stage.named_parameters():
                if homes[f"{number}.{name}"] == pipeline.rank:
                    np.testing.assert_allclose(p.grad, wanted[number][name], rtol=1e-12, atol=1e-14, err_msg=name)


def check_failure(transport):
    """Check that a failure on one rank is raised on all of them, and does not affect the next step."""

    class Fuse(nn.Module):
        blown = True

        def forward(self, x):
            if x.shape[0] == 3 and self.blown:
                raise KeyError("blown")
            return x

    fuse = Fuse()
    model = [nn.Linear(2, 2), fuse]
    pipeline = Pipeline(model, micro_batches=2, loss_fn=nn.functional.mse_loss, transport=transport)
    pipeline.step(rg.ones(4, 2), target=rg.ones(4, 2))
    fuse.blown = False
    pipeline.step(rg.ones(6, 2), target=rg.ones(6, 2))
    fuse.blown = True
    with pytest.raises(PipelineError, match=r"rank 1, stage 1, microbatch 0, action F1.0: KeyError: 'blown'"):
        pipeline.step(rg.ones(6, 2), target=rg.ones(6, 2))
    assert pipeline.step(rg.ones(4, 2), target=rg.ones(4, 2)).item() > 0


def check_wrong_ranks(transport):
    """Check that a pipeline with another number of ranks than exist is refused."""
    with pytest.raises(ValueError, match=f"ranks is {RANKS + 1}, but {RANKS} processes were started"):
        Pipeline(make_model(), ranks=RANKS + 1, transport=transport)


def offload_settings(stages):
    """Return settings with which a search offloads: recomputing is slow, and there is memory for one microbatch."""

    def cost(action):
        return {"F": 1.0, "I": 1.0, "W": 1.0, "B": 2.0}.get(action.kind.value, 0.05)

    sizes = {
        name: dict.fromkeys(range(stages), size) for name, size in (("saved", 1.0), ("kept", 1.0), ("inputs", 0.1))
    }
    return AutoSchedule(
        memory_limit=3.0, cost=cost, overhead=lambda action: 0.0, moves=lambda action: 0.3, seconds=0.3, **sizes
    )


def failures(transport):
    """Return the differences, by check."""
    checks = {name: lambda name=name: check_schedule(transport, name) for name in sorted(SCHEDULES)}
    checks["deterministic"] = lambda: check_schedule(transport, "interleaved1f1b", deterministic=True)
    checks["deterministic, chimera"] = lambda: check_schedule(transport, "chimera", deterministic=True)
    checks["auto"] = lambda: check_schedule(transport, AutoSchedule(seconds=0.2, rounds=1))
    checks["auto, offload"] = lambda: check_schedule(transport, offload_settings(2 * RANKS))
    changed = with_offload(with_recomputation(make_schedule("zbv", 2 * RANKS, 3, ranks=RANKS), [0, 2]), [1, 3])
    checks["recomputation and offload"] = lambda: check_schedule(transport, changed)
    for name in ("1f1b", "zbv"):
        checks[f"compiled, {name}"] = lambda name=name: check_schedule(transport, name, compile=True)
    for name in ("1f1b", "zbv", "interleaved1f1b", "chimera"):
        checks[f"branches, {name}"] = lambda name=name: check_branches(transport, name)
    for name in ("1f1b", "zbv", "zb-h2", "chimera", "dualpipe"):
        checks[f"several steps, {name}"] = lambda name=name: check_train_steps(transport, name)
    checks["several steps, replicas"] = lambda: check_train_steps(transport, "1f1b", 1, RANKS)
    checks["segments"] = lambda: check_segments(transport)
    checks["failure"] = lambda: check_failure(transport)
    checks["wrong ranks"] = lambda: check_wrong_ranks(transport)
    found = {}
    for name, check in checks.items():
        try:
            check()
        except Exception:
            found[name] = traceback.format_exc()
    return found


if __name__ == "__main__":
    found = failures(sys.argv[1])
    if Pipeline(make_model(), transport=sys.argv[1], ranks=RANKS).rank == 0:
        print("MATRIX", json.dumps(found))
