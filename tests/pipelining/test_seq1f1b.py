"""Seq1F1B: the gradients of whole sequences, with less memory and a smaller bubble than 1F1B."""

import itertools

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
)
from retrograd.pipelining.planning.simulate import unit_cost
from retrograd.pipelining.schedules.lowering import chain, lower, validate


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


class Head(nn.Linear):
    def forward(self, x, start):
        return super().forward(x)


def net():
    rg.manual_seed(0)
    return [stage.double() for stage in (Block(), Block(), Block(), Head(8, 5))]


def loss_fn(out, target):
    return cross_entropy(out.reshape(-1, 5), target.reshape(-1))


def data():
    rg.manual_seed(1)
    return rg.randn(4, 12, 8, dtype=rg.float64), rg.randint(5, (4, 12))


def unsegmented():
    """Return the loss of whole sequences and the gradients."""
    stages, (x, y) = net(), data()
    value = x, 0
    for stage in stages:
        value = stage(*value)
    loss = loss_fn(value, y)
    loss.backward()
    return loss.detach(), [p.grad for stage in stages for p in stage.parameters()]


def segmented(lengths, schedule, ranks=4, steps=1):
    """Return the same by a pipeline, from the last of several steps."""
    stages, (x, y) = net(), data()
    pipeline = Pipeline(
        stages,
        ranks=ranks,
        schedule=schedule,
        micro_batches=2 * len(lengths),
        loss_fn=loss_fn,
        count_fn=lambda target: target.numel(),
        args_chunk_spec=(TensorChunkSpec(0), Replicate()),
    )
    starts = [rg.tensor(sum(lengths[:number])) for number in range(len(lengths))] * 2
    for _ in range(steps):
        for stage in stages:
            stage.zero_grad()
        args = list(zip(split_segments(x, 2, lengths), starts, strict=True))
        loss = pipeline.step_microbatches(args, target_mbs=split_segments(y, 2, lengths))
    return loss, [p.grad for stage in stages for p in stage.parameters()]


@pytest.mark.parametrize("lengths", [[12], [6, 6], [7, 3, 1, 1], [1, 5, 6]])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_gradients_are_those_of_whole_sequences(lengths, ranks):
    loss, gradients = unsegmented()
    found_loss, found = segmented(lengths, seq1f1b(4, 2, len(lengths), ranks=ranks), ranks, steps=2)
    rg.testing.assert_close(found_loss, loss, rtol=1e-12, atol=0)
    for mine, expected in zip(found, gradients, strict=True):
        rg.testing.assert_close(mine, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb-h1"])
def test_a_schedule_with_another_order_of_backward_passes_is_refused(name):
    with pytest.raises(PipelineError, match="whole backward passes of later segments must come before"):
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
    with pytest.raises(ValueError, match=r"lengths \[4, 1\] sum up to 5, not to 6"):
        split_segments(x, 2, [4, 1])


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
    cache, x = SegmentCache(), rg.ones(1, 4, 2)
    cache(0, x)
    with pytest.raises(ValueError, match="a segment begins at 3, but those before it have 4 tokens"):
        cache(3, x)
