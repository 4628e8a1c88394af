"""Seq1F1B: the gradients of whole sequences, with less memory and a smaller bubble than 1F1B."""

import copy
import itertools
import pickle

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import cross_entropy, scaled_dot_product_attention
from retrograd.pipelining import (
    Kind,
    Pipeline,
    PipelineError,
    Replicate,
    SegmentCache,
    TensorChunkSpec,
    make_schedule,
    peak_activations,
    segment_lengths,
    seq1f1b,
    simulate,
    simulate_costs,
    split_segments,
    with_offload,
    with_recomputation,
)
from retrograd.pipelining.planning.simulate import unit_cost
from retrograd.pipelining.schedules.lowering import chain, lower, validate
from retrograd.utils.checkpoint import checkpoint


class Block(nn.Module):
    """A transformer block whose attention is causal, over the segments before and the present one."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads, self.cache = heads, SegmentCache(dim=2)
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.rest = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, x, start):
        batch, length, width = x.shape
        shape = batch, length, self.heads, width // self.heads
        q, k, v = (part.reshape(shape).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        k, v = self.cache(start, k, v)
        positions = rg.arange(k.shape[2])
        mask = positions[None, :] <= positions[-length:, None]
        found = scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)
        x = x + self.out(found.reshape(batch, length, width))
        return x + self.rest(x), start


class Embedding(nn.Module):
    """Tokens with learned positions."""

    def __init__(self, tokens=5, width=8):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(tokens, width), nn.Parameter(rg.randn(16, width))

    def forward(self, ids, start):
        begin = int(start)
        return self.tokens(ids) + self.positions[begin : begin + ids.shape[1]], start


class Head(nn.Linear):
    def forward(self, x, start):
        return super().forward(x)


class InSequence(nn.Module):
    """Stages as one module, which a pipeline captures."""

    def __init__(self, stages):
        super().__init__()
        self.stages = nn.ModuleList(stages)

    def forward(self, *value):
        for stage in self.stages:
            value = stage(*value)
        return value


class Checkpointed(nn.Module):
    """A stage whose forward pass is repeated in its backward pass."""

    def __init__(self, stage):
        super().__init__()
        self.stage = stage

    def forward(self, x, start):
        return checkpoint(lambda x: self.stage(x, start)[0], x, use_reentrant=False), start


def net():
    rg.manual_seed(0)
    return [stage.double() for stage in (Block(), Block(), Block(), Head(8, 5))]


def language_model(tied=True):
    """Return stages from tokens to scores; the last one may have the weight of the first."""
    rg.manual_seed(0)
    stages = [stage.double() for stage in (Embedding(), Block(), Block(), Head(8, 5, bias=False))]
    if tied:
        stages[-1].weight = stages[0].tokens.weight
    return stages


def frozen_model():
    """Return stages of which the first two are not trained."""
    stages = language_model(tied=False)
    for stage in stages[:2]:
        stage.requires_grad_(False)
    return stages


def sum_loss(out, target):
    return cross_entropy(out.reshape(-1, 5), target.reshape(-1), reduction="sum")


def padded(target):
    """Return targets whose last tokens are ignored, all of them in the last segment."""
    target = target.clone()
    target[:, 9:] = target[1, 4:] = -100
    return target


def loss_fn(out, target):
    return cross_entropy(out.reshape(-1, 5), target.reshape(-1))


def data():
    rg.manual_seed(1)
    return rg.randn(4, 12, 8, dtype=rg.float64), rg.randint(5, (4, 12))


def tokens(sequences=4):
    rg.manual_seed(1)
    return rg.randint(5, (sequences, 12)), rg.randint(5, (sequences, 12))


def unsegmented(stages=None, batch=None, loss_fn=loss_fn):
    """Return the loss of whole sequences and the gradients."""
    stages, (x, y) = stages or net(), batch or data()
    loss = loss_fn(InSequence(stages)(x, 0), y)
    loss.backward()
    return loss.detach(), [p.grad for stage in stages for p in stage.parameters()]


def segmented(
    lengths, schedule, stages=None, batch=None, ranks=4, steps=1, micro_batches=2, start=rg.tensor, **options
):
    """Return the same by a pipeline, from the last of several steps."""
    stages, (x, y) = stages or net(), batch or data()
    pipeline = Pipeline(
        stages,
        ranks=ranks,
        schedule=schedule,
        micro_batches=micro_batches * len(lengths),
        args_chunk_spec=(TensorChunkSpec(0), Replicate()),
        **{"loss_fn": loss_fn, "count_fn": lambda target: target.numel(), **options},
    )
    starts = [start(sum(lengths[:number])) for number in range(len(lengths))] * micro_batches
    for _ in range(steps):
        pipeline.model.zero_grad()
        args = list(zip(split_segments(x, micro_batches, lengths), starts, strict=True))
        loss = pipeline.step_microbatches(args, target_mbs=split_segments(y, micro_batches, lengths))
    return loss, [p.grad for p in pipeline.model.parameters()]


def assert_same(found, expected):
    """Check the loss and the gradients, of shared parameters only once."""
    rg.testing.assert_close(found[0], expected[0], rtol=1e-12, atol=0)
    for mine, wanted in zip(found[1], expected[1][: len(found[1])], strict=True):
        assert (mine is None) == (wanted is None)
        if wanted is not None:
            rg.testing.assert_close(mine, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("lengths", [[12], [6, 6], [7, 3, 1, 1], [1, 5, 6]])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_gradients_are_those_of_whole_sequences(lengths, ranks):
    assert_same(segmented(lengths, seq1f1b(4, 2, len(lengths), ranks=ranks), ranks=ranks, steps=2), unsegmented())


@pytest.mark.parametrize("make", [language_model, frozen_model])
@pytest.mark.parametrize(
    ("batch", "options"),
    [
        (tokens(), {}),
        (tokens(), {"count_fn": None}),  # segments differ in length, so they are weighted by tokens
        (tokens(), {"loss_fn": sum_loss, "loss_reduction": "sum"}),
        (tokens(), {"deterministic": True}),
        (tokens(), {"start": int}),
        (tokens(5), {}),
        (tokens(6), {"micro_batches": 4}),
        (tokens(), {"schedule": with_offload(seq1f1b(4, 2, 3))}),
        (tokens(6), {"micro_batches": 6, "replicas": 2, "schedule": seq1f1b(4, 3, 3), "steps": 2}),
        ((tokens()[0], padded(tokens()[1])), {"count_fn": lambda target: (target != -100).sum().item()}),
    ],
    ids=["plain", "no count", "sum", "deterministic", "int", "uneven", "fewer", "offload", "replicas", "padded"],
)
def test_the_numbers_of_whole_sequences_with(make, batch, options):
    expected = unsegmented(make(), batch, options.get("loss_fn", loss_fn))
    options = {"schedule": seq1f1b(4, options.get("micro_batches", 2), 3), **options}
    assert_same(segmented([5, 4, 3], stages=make(), batch=batch, **options), expected)


@pytest.mark.parametrize("window", [1, 2, 3, None])
@pytest.mark.parametrize("lengths", [[3, 3, 3, 3], [1, 2, 3, 2, 4], [5, 1, 6]])
def test_a_stream_of_segments_gives_the_outputs_of_whole_sequences(lengths, window):
    x, _ = tokens(2)
    with rg.no_grad():
        expected = InSequence(language_model())(x, 0)
    starts = [rg.tensor(sum(lengths[:number])) for number in range(len(lengths))]
    requests = list(zip(split_segments(x, 1, lengths), starts, strict=True))
    # Segments of a new length in later windows, too, which run by themselves first.
    found = list(Pipeline(language_model(), ranks=2).stream(requests * 2, window=window))
    for part in (found[: len(lengths)], found[len(lengths) :]):
        rg.testing.assert_close(rg.cat(part, 1), expected, rtol=1e-12, atol=1e-12)


def test_in_function_transforms_segments_have_the_derivatives_of_whole_sequences():
    block, (x, _) = Block().double(), data()

    def unsplit(x):
        return block(x, 0)[0]

    def in_segments(x):
        parts = [(0, x[:, :5]), (5, x[:, 5:6]), (6, x[:, 6:])]
        return rg.cat([block(part, start)[0] for start, part in parts], 1)

    for transform in (
        lambda f: rg.func.grad(lambda x: f(x).sin().sum()),
        lambda f: lambda x: rg.func.jvp(f, (x,), (x.cos(),))[1],
        lambda f: lambda x: rg.func.vmap(f)(x[:, None]),
        lambda f: lambda x: rg.func.vmap(rg.func.grad(lambda x: f(x).sin().sum()))(x[:, None]),
        lambda f: rg.func.grad(lambda x: (rg.func.grad(lambda x: f(x).sin().sum())(x) ** 2).sum()),
    ):
        rg.testing.assert_close(transform(in_segments)(x), transform(unsplit)(x), rtol=1e-10, atol=1e-12)
    with pytest.raises(RuntimeError, match="did not run in the same call of a function transform"):
        block(x, 12)


def test_tensors_that_need_no_gradient_are_cached_too():
    cache = SegmentCache(dim=1)
    keys, ids = rg.ones(1, 3, 2, requires_grad=True), rg.arange(3)[None]
    cache(0, keys, ids, ids > 1, keys.detach())
    joined, found, mask, fixed = cache(3, keys, ids + 3, ids > 0, keys.detach())
    assert found.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert mask.tolist() == [[False, False, True, False, True, True]]
    assert joined.requires_grad
    assert not fixed.requires_grad


@pytest.mark.parametrize("lengths", [[6, 6], [5, 4, 3]])
def test_a_captured_model_with_segments_is_refused(lengths):
    with pytest.raises(RuntimeError, match="pass the stages to Pipeline as a list of modules"):
        segmented(lengths, seq1f1b(1, 2, len(lengths)), InSequence(language_model()), tokens(), ranks=1)


@pytest.mark.parametrize("lengths", [[6, 6], [5, 4, 3]])
def test_forward_passes_that_are_repeated_are_refused(lengths):
    stages = net()[2:]
    schedule = seq1f1b(2, 2, len(lengths))
    with pytest.raises(PipelineError, match="stages that recompute, or use checkpoint"):
        segmented(lengths, with_recomputation(schedule, [0]), stages, ranks=2)
    with pytest.raises(PipelineError, match="stages that recompute, or use checkpoint"):
        segmented(lengths, schedule, [Checkpointed(stages[0]), stages[1]], ranks=2)


def test_a_segment_after_the_backward_pass_of_one_before_is_refused():
    cache, x = SegmentCache(dim=1), rg.ones(1, 3, 2, requires_grad=True)
    cache(0, x)[0].sum().backward()
    with pytest.raises(RuntimeError, match="a segment comes after the backward pass of one before"):
        cache(3, x)
    cache(0, x)[0].sum().backward()
    assert x.grad.tolist() == [[[2.0, 2.0]] * 3]


def test_a_copy_of_a_model_and_a_file_have_no_segments():
    stage, (x, _) = Block().double(), data()
    stage(x, 0)
    for copied in (copy.deepcopy(stage), pickle.loads(pickle.dumps(stage))):
        with pytest.raises(ValueError, match="a segment begins at 12, but those before it have 0 tokens"):
            copied(x, 12)
    assert stage(x, 12)[0].shape == x.shape


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb-h1"])
def test_a_schedule_with_another_order_of_backward_passes_is_refused(name):
    match = "whole backward passes of later segments must come before|comes after the backward pass of one before"
    with pytest.raises(PipelineError, match=match):
        segmented([6, 6], make_schedule(name, 4, 4))


def test_orders_are_complete_and_hold_as_many_segments_as_they_say():
    for p, m, k in itertools.product((1, 2, 3, 5), (1, 2, 7), (1, 2, 4)):
        schedule = seq1f1b(p, m, k)
        validate(lower(schedule, chain(p)), chain(p))
        peaks = [peak_activations(row) for row in schedule]
        assert peaks == [min(p - rank + k - 1, m * k) for rank in range(p)], (p, m, k)
        backwards = [action.micro_batch for action in schedule[0] if action.kind is Kind.B]
        assert backwards == [b * k + s for b in range(m) for s in reversed(range(k))]
    assert seq1f1b(4, 6, 1) == make_schedule("1f1b", 4, 6)
    assert seq1f1b(4, 3, 2, ranks=2)[0][:2] == [*make_schedule("1f1b", 4, 6, ranks=2)[0][:2]]


@pytest.mark.parametrize(("p", "m", "k"), [(4, 8, 2), (8, 16, 4), (3, 5, 3)])
def test_memory_and_bubble_are_smaller_than_those_of_1f1b(p, m, k):
    found = simulate_costs(seq1f1b(p, m, k), chain(p), lambda action: unit_cost(action) / k)
    plain = simulate_costs(make_schedule("1f1b", p, m), chain(p), unit_cost)
    assert found.busy == pytest.approx(plain.busy)
    assert found.span == pytest.approx(3 * m + 3 * (p - 1) / k)
    assert plain.span == 3 * m + 3 * (p - 1)
    held = max(map(peak_activations, seq1f1b(p, m, k))) / k
    assert held == (p + k - 1) / k < max(map(peak_activations, make_schedule("1f1b", p, m))) == p


def test_segments_of_equal_cost_are_shorter_towards_the_end_and_take_less_time():
    lengths = segment_lengths(64, 4, quadratic=0.1)
    assert lengths == sorted(lengths, reverse=True)
    assert sum(lengths) == 64

    def step(lengths):
        ends = list(itertools.accumulate(lengths, initial=0))
        costs = [end - start + 0.1 * (end * end - start * start) for start, end in itertools.pairwise(ends)]

        def cost(action):
            return unit_cost(action) * costs[action.micro_batch % 4]

        return simulate(seq1f1b(8, 16, 4), chain(8), cost).span

    assert step(lengths) < step([16] * 4)


@pytest.mark.parametrize(("length", "segments"), [(1, 1), (5, 5), (7, 3), (1000, 7)])
@pytest.mark.parametrize("quadratic", [0.0, 1e-3, 1.0, 1e6])
def test_lengths_sum_up_and_no_segment_is_empty(length, segments, quadratic):
    found = segment_lengths(length, segments, quadratic)
    assert len(found) == segments
    assert sum(found) == length
    assert min(found) >= 1


def test_segments_are_sequences_of_microbatches_in_the_order_of_the_schedule():
    x = rg.arange(24).reshape(4, 6)
    parts = split_segments(x, 2, [4, 2])
    assert [part[0, 0].item() for part in parts] == [0, 4, 12, 16]
    assert [part.shape for part in parts] == [(2, 4), (2, 2)] * 2
    uneven = [part.shape[0] for part in split_segments(rg.ones(7, 6), 3, [4, 2])]
    assert uneven == [3, 3, 2, 2, 2, 2], "as in Pipeline.step"
    with pytest.raises(ValueError, match=r"lengths \[4, 1\] sum up to 5, not to 6"):
        split_segments(x, 2, [4, 1])
    with pytest.raises(ValueError, match=r"lengths \[7, -1\] must be at least 1"):
        split_segments(x, 2, [7, -1])
    with pytest.raises(ValueError, match="a batch of 4 examples can't make 5 microbatches"):
        split_segments(x, 5, [4, 2])
    for dim in (0, 2, -3):
        with pytest.raises(ValueError, match=f"cannot be cut into segments along dimension {dim}"):
            split_segments(x, 2, [2, 2], dim)


def test_a_cache_without_gradients_gives_the_outputs_of_whole_sequences():
    stage, (x, _) = Block().double(), data()
    with rg.no_grad():
        expected = stage(x, 0)[0]
        first, second = stage(x[:, :5], 0)[0], stage(x[:, 5:], 5)[0]
    rg.testing.assert_close(rg.cat([first, second], 1), expected, rtol=1e-12, atol=1e-12)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="segments is 0; it must be at least 1"):
        seq1f1b(2, 2, 0)
    with pytest.raises(TypeError, match=r"micro_batches is 2\.0"):
        seq1f1b(2, 2.0, 2)
    with pytest.raises(ValueError, match="5 stages cannot be spread evenly over 2 ranks"):
        seq1f1b(5, 2, 2, ranks=2)
    with pytest.raises(ValueError, match="2 tokens can't make 3 segments"):
        segment_lengths(2, 3)
    with pytest.raises(ValueError, match="quadratic must be a number of at least 0, got -1"):
        segment_lengths(8, 2, -1)
    with pytest.raises(TypeError, match=r"length must be an int, got 12\.0"):
        segment_lengths(12.0, 2)


def test_wrong_arguments_of_a_cache_are_refused():
    cache, x = SegmentCache(), rg.ones(1, 4, 2)
    cache(0, x)
    for grad in (True, False):
        for start in (3, 5, -1):
            with (
                rg.set_grad_enabled(grad),
                pytest.raises(ValueError, match=f"begins at {start}, but those before it have 4 tokens"),
            ):
                cache(start, x)
    for start in (1.5, None, "a", rg.tensor(0.0), rg.tensor([0, 1]), False):
        with pytest.raises(TypeError, match="the position of a segment must be an integer"):
            cache(start, x)
    with pytest.raises(ValueError, match="got 2 tensors, but 1 for the segments before"):
        cache(4, x, x)
    with pytest.raises(ValueError, match=r"as many tokens each, got \[4, 3\]"):
        cache(0, x, x[:, :3])
    with pytest.raises(TypeError, match="expected keys and values"):
        cache(0)
    with pytest.raises(TypeError, match="expected tensors after the position"):
        cache(0, x.numpy())
    with pytest.raises(ValueError, match="has no dimension -2"):
        cache(0, x[0, 0])
    cache(4, x)
