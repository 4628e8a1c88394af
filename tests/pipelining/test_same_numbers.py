"""Loss and gradients equal those of the unsplit step: for every schedule, number of ranks, stages and microbatches."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as rg
from retrograd import nn
from retrograd.nested import nested_tensor
from retrograd.nn.functional import cross_entropy, mse_loss
from retrograd.pipelining import (
    Pipeline,
    PipelineError,
    TensorChunkSpec,
    TrivialLossWrapper,
    make_schedule,
    pipe_split,
    sum_reducer,
)
from retrograd.pipelining.schedules import SCHEDULES
from retrograd.pipelining.schedules.tables import write_csv

from ..case_groups import group_cases

NAMES = sorted(SCHEDULES)


class Deep(nn.Module):
    """A model with any number of stages, a skip connection over all of them, a weight that all share, and dropout."""

    def __init__(self, stages, dropout=0.3):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(stages)])
        self.shared = nn.Parameter(rg.randn(4, 4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        h = start = self.first(x)
        for number, layer in enumerate(self.layers):
            if number:
                pipe_split()
            h = self.dropout(layer(h).tanh() @ self.shared) + start
        return h


def make_model(stages, dropout=0.3, seed=0):
    """Return the same model each time, in double precision."""
    rg.manual_seed(seed)
    return Deep(stages, dropout).to(rg.float64)


def data(rows, seed=1):
    r = np.random.default_rng(seed)
    return rg.tensor(r.normal(size=(rows, 3))), rg.tensor(r.normal(size=(rows, 4)))


def gradients(model):
    return {name: p.grad.numpy().copy() for name, p in model.named_parameters()}


def unsplit(stages, rows, steps=1, scale=1.0, dropout=0.3):
    """Return loss and gradients of steps on the whole batch, and the random numbers drawn after them."""
    model, (x, y) = make_model(stages, dropout), data(rows)
    rg.manual_seed(7)
    for _ in range(steps):
        loss = mse_loss(model(x), y)
        (loss * scale).backward()
    return loss.item(), gradients(model), rg.rand(3).tolist()


def assert_same(model, expected, rtol=1e-9):
    for name, grad in gradients(model).items():
        np.testing.assert_allclose(grad, expected[name], rtol=rtol, atol=1e-12, err_msg=name)


def check(name, ranks, per_rank, micro_batches, *, steps=1, scale=1.0, extra_rows=1, **options):
    stages, rows = ranks * per_rank, micro_batches + extra_rows
    loss, expected, after = unsplit(stages, rows, steps, scale)
    model, (x, y) = make_model(stages), data(rows)
    pipeline = Pipeline(
        model, schedule=name, ranks=ranks, micro_batches=micro_batches, loss_fn=mse_loss, loss_scale=scale, **options
    )
    rg.manual_seed(7)
    for _ in range(steps):
        found = pipeline.step(x, target=y)
    assert found.item() == pytest.approx(loss, rel=1e-12)
    assert_same(model, expected)
    assert rg.rand(3).tolist() == after


@given(st.sampled_from(NAMES), st.integers(1, 8), st.integers(1, 3), st.integers(1, 16))
@settings(max_examples=40)
def test_every_schedule_gives_the_numbers_of_the_unsplit_step_with_dropout(name, ranks, per_rank, micro_batches):
    ranks += ranks % SCHEDULES[name].directions
    check(name, ranks, per_rank, micro_batches)


@pytest.mark.parametrize("name", NAMES)
def test_two_scaled_steps_add_up_under_every_schedule(name):
    check(name, 2, 2, 3, steps=2, scale=8.0)


def accumulated(stages, rows, micro_batches):
    """Return the gradients of the unsplit model, microbatch by microbatch, with one draw of dropout masks for all."""
    model, (x, y) = make_model(stages, dropout=0.0), data(rows)
    for _ in range(2):
        start = 0
        for i in range(micro_batches):
            size = rows // micro_batches + (i < rows % micro_batches)
            loss = mse_loss(model(x[start : start + size]), y[start : start + size])
            loss.backward(rg.full_like(loss, size / rows))
            start += size
    return gradients(model)


@group_cases
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("ranks", "per_rank", "micro_batches"), [(1, 2, 3), (2, 2, 5), (3, 1, 2), (2, 3, 4)])
def test_deterministic_gradients_are_the_unsplit_ones_to_the_last_bit(name, ranks, per_rank, micro_batches):
    ranks += ranks % SCHEDULES[name].directions
    stages, rows = ranks * per_rank, micro_batches + 1
    expected = accumulated(stages, rows, micro_batches)
    model, (x, y) = make_model(stages, dropout=0.0), data(rows)
    pipeline = Pipeline(
        model, schedule=name, ranks=ranks, micro_batches=micro_batches, loss_fn=mse_loss, deterministic=True
    )
    for _ in range(2):
        pipeline.step(x, target=y)
    for key, grad in gradients(model).items():
        assert grad.tobytes() == expected[key].tobytes(), key


class Ragged(nn.Module):
    """A model of two stages over sequences of any lengths, with dropout in both."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.dropout = nn.Linear(3, 5), nn.Linear(5, 4), nn.Dropout(0.4)

    def forward(self, x):
        y = self.dropout(self.a(x).tanh())
        pipe_split()
        return self.dropout(self.b(y))


def ragged(lengths, width, seed):
    r = np.random.default_rng(seed)
    return nested_tensor([rg.tensor(r.normal(size=(n, width))) for n in lengths])


@pytest.mark.parametrize("name", ["1f1b", "zb-h1"])
def test_dropout_of_ragged_batches_is_that_of_the_unsplit_step_for_other_lengths_too(name):
    def model():
        rg.manual_seed(0)
        return Ragged().to(rg.float64)

    alone, split = model(), model()
    pipeline = Pipeline(split, schedule=name, micro_batches=3, loss_fn=mse_loss)
    for lengths in ([2, 5, 1, 3, 4, 2], [1, 1, 7, 2, 3, 6]):
        x, y = ragged(lengths, 3, 1), ragged(lengths, 4, 2)
        rg.manual_seed(3)
        loss = mse_loss(alone(x), y)
        loss.backward()
        rg.manual_seed(3)
        assert pipeline.step(x, target=y).item() == pytest.approx(loss.item(), rel=1e-12)
        assert_same(split, gradients(alone))


def test_the_loss_may_be_the_model_s_own():
    loss, expected, _ = unsplit(2, 5)
    model, (x, y) = make_model(2), data(5)
    rg.manual_seed(7)
    found = Pipeline(TrivialLossWrapper(model, mse_loss), micro_batches=3).step(x, y)
    assert found.item() == pytest.approx(loss, rel=1e-12)
    assert_same(model, expected)


def test_ready_made_micro_batches_count_by_their_sizes():
    loss, expected, _ = unsplit(2, 6, dropout=0.0)
    model, (x, y) = make_model(2, dropout=0.0), data(6)
    pipeline = Pipeline(model, loss_fn=mse_loss)
    found = pipeline.step_microbatches([(x[:1],), (x[1:5],), (x[5:],)], target_mbs=[y[:1], y[1:5], y[5:]])
    assert found.item() == pytest.approx(loss, rel=1e-12)
    assert_same(model, expected)


def test_ready_made_micro_batches_of_sequences_count_by_their_elements_if_lengths_differ():
    rg.manual_seed(3)
    xs = [rg.randn(rows, length, 4, dtype=rg.float64) for rows, length in ((2, 3), (2, 7), (1, 2))]
    ys = [{"values": rg.randn_like(x), "rows": rg.ones(x.shape[0])} for x in xs]
    expected = nn.Linear(4, 4).double()
    model = [copy.deepcopy(expected), nn.Identity()]
    loss = mse_loss(expected(rg.cat([x.flatten(0, 1) for x in xs])), rg.cat([y["values"].flatten(0, 1) for y in ys]))
    loss.backward()
    pipeline = Pipeline(model, loss_fn=lambda out, target: mse_loss(out, target["values"]))
    found = pipeline.step_microbatches([(x,) for x in xs], target_mbs=ys)
    assert found.item() == pytest.approx(loss.item(), rel=1e-12)
    rg.testing.assert_close(model[0].weight.grad, expected.weight.grad, rtol=1e-12, atol=1e-14)


def test_ready_made_lists_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="2 tuples of arguments, 1 dicts"):
        Pipeline(make_model(2), loss_fn=mse_loss).step_microbatches([(1,), (2,)], [{}], [1, 2])


def test_a_schedule_may_be_a_list_of_actions_or_a_file(tmp_path):
    loss, expected, _ = unsplit(4, 5)
    actions = make_schedule("zbv", 4, 3)
    write_csv(actions, tmp_path / "mine.csv")
    for schedule in (actions, tmp_path / "mine.csv"):
        model, (x, y) = make_model(4), data(5)
        rg.manual_seed(7)
        found = Pipeline(model, schedule=schedule, micro_batches=3, loss_fn=mse_loss).step(x, target=y)
        assert found.item() == pytest.approx(loss, rel=1e-12)
        assert_same(model, expected)


def test_a_schedule_for_others_is_refused():
    pipeline = Pipeline(make_model(2), schedule=make_schedule("1f1b", 2, 3), micro_batches=4, loss_fn=mse_loss)
    x, y = data(8)
    with pytest.raises(ValueError, match="2 stages, 3 microbatches and 2 ranks, but there are 2, 4 and 2"):
        pipeline.step(x, target=y)


class Numpy(nn.Module):
    """A model that can't be captured: it converts to NumPy, where there are no gradients."""

    def forward(self, x, scale):
        return x * rg.tensor(np.full(3, scale.numpy().max()))


def test_stages_made_by_hand_are_called_as_they_are():
    first, second = nn.Linear(3, 4).to(rg.float64), nn.Linear(4, 4).to(rg.float64)
    x, y = data(6)
    scale = rg.full((6, 1), 2.0, dtype=rg.float64)
    loss = mse_loss(second(first(Numpy()(x, scale))), y)
    loss.backward()
    expected = [p.grad.numpy().copy() for p in (*first.parameters(), *second.parameters())]
    for p in (*first.parameters(), *second.parameters()):
        p.grad = None
    pipeline = Pipeline([Numpy(), first, second], micro_batches=4, loss_fn=mse_loss)
    assert pipeline.step(x, scale, target=y).item() == pytest.approx(loss.item())
    for p, grad in zip((*first.parameters(), *second.parameters()), expected, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), grad)
    assert set(pipeline.state_dict()) == {"1.weight", "1.bias", "2.weight", "2.bias"}


def test_dropout_in_stages_made_by_hand_does_not_depend_on_the_order_of_the_threads():
    x, y = data(8)

    def step(schedule):
        rg.manual_seed(0)
        stages = [nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5)), nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))]
        stages = [stage.to(rg.float64) for stage in stages]
        rg.manual_seed(1)
        return Pipeline(stages, schedule=schedule, micro_batches=4, loss_fn=mse_loss).step(x, target=y).item()

    assert step("gpipe") == step("1f1b") == step("zb-h1")


def test_dropout_in_a_loss_does_not_depend_on_the_schedule():
    def noisy(out, y):
        return mse_loss(nn.functional.dropout(out, 0.5), y)

    def step(schedule):
        model, (x, y) = make_model(2), data(6)
        rg.manual_seed(1)
        return Pipeline(model, schedule=schedule, micro_batches=3, loss_fn=noisy).step(x, target=y).item()

    assert step("gpipe") == step("1f1b")


def test_a_value_that_is_not_a_number_ends_the_step_where_it_arose():
    model, (x, y) = make_model(3), data(4)
    with rg.no_grad():
        model.layers[1].weight.fill_(float("nan"))
    pipeline = Pipeline(model, micro_batches=2, loss_fn=mse_loss, watch_nan=True)
    with pytest.raises(
        PipelineError, match=r"rank 1, stage 1, microbatch 0, action F1.0: FloatingPointError: the value .* has nan"
    ):
        pipeline.step(x, target=y)


def test_answers_to_a_stream_of_requests_come_in_order_before_it_ends():
    model = make_model(3).eval()
    pipeline = Pipeline(model)
    sizes = [1, 4, 2, 2, 3]
    taken = []

    def requests():
        for i, size in enumerate(sizes):
            taken.append(i)
            yield data(size, seed=i)[0]

    answers = pipeline.stream(requests(), window=2)
    first = next(answers)
    assert taken == [0, 1]
    for i, answer in enumerate([first, *answers]):
        np.testing.assert_allclose(answer.numpy(), model(data(sizes[i], seed=i)[0]).detach().numpy())


def test_one_model_serves_training_and_inference_with_its_parameters_in_the_same_stages():
    model, (x, y) = make_model(3), data(4)
    pipeline = Pipeline(model, ranks=3, micro_batches=2, loss_fn=mse_loss)
    pipeline.step(x, target=y)
    model.eval()
    np.testing.assert_allclose(pipeline.predict(x).numpy(), model(x).detach().numpy())
    model.train()
    assert pipeline.homes()["layers.2.weight"] == 2


def test_a_loss_that_adds_up_is_that_of_the_whole_batch():
    model, (x, y) = make_model(2, dropout=0.0), data(7)
    loss = ((model(x) - y) ** 2).sum()
    loss.backward()
    expected = gradients(model)
    model.zero_grad()
    pipeline = Pipeline(model, micro_batches=3, loss_fn=lambda out, y: ((out - y) ** 2).sum(), loss_reduction="sum")
    assert pipeline.step(x, target=y).item() == pytest.approx(loss.item(), rel=1e-12)
    assert_same(model, expected)


def test_a_mean_over_the_targets_that_are_not_ignored_is_that_of_the_whole_batch():
    model, (x, _), y = make_model(2, dropout=0.0), data(8), rg.tensor([0, -100, -100, 1, 2, 3, -100, -100])
    loss = cross_entropy(model(x), y)
    loss.backward()
    expected = gradients(model)
    model.zero_grad()
    pipeline = Pipeline(
        model, micro_batches=3, loss_fn=cross_entropy, count_fn=lambda target: (target != -100).sum().item()
    )
    assert pipeline.step(x, target=y).item() == pytest.approx(loss.item(), rel=1e-12)
    assert_same(model, expected)


@pytest.mark.parametrize("counts", [[0, 0], [-1, 2]])
def test_counts_that_are_none_are_refused(counts):
    (x, y), left = data(4), list(counts)
    pipeline = Pipeline(make_model(2), micro_batches=2, loss_fn=mse_loss, count_fn=lambda target: left.pop(0))
    with pytest.raises(ValueError, match="count_fn must return numbers of elements"):
        pipeline.step(x, target=y)


def test_another_reduction_is_refused():
    with pytest.raises(ValueError, match="'mean' or 'sum', got 'max'"):
        Pipeline(make_model(2), loss_fn=mse_loss, loss_reduction="max")


def test_outputs_are_merged_by_the_spec():
    class Total(nn.Module):
        def forward(self, x):
            return {"rows": x, "total": x.sum()}

    spec = {"rows": TensorChunkSpec(0), "total": sum_reducer}
    out = Pipeline(Total(), micro_batches=2, output_chunk_spec=spec).predict(rg.tensor([1.0, 2.0, 4.0]))
    assert out["rows"].tolist() == [1, 2, 4]
    assert out["total"].item() == 7


def test_bad_schedules_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match="4 stages cannot be spread evenly over 3 ranks"):
        Pipeline(make_model(4), 4, ranks=3)
    with pytest.raises(FileNotFoundError):
        Pipeline(make_model(2), schedule=tmp_path / "missing.csv")


def test_a_prediction_may_have_fewer_examples_than_there_are_micro_batches():
    model = make_model(2).eval()
    x, _ = data(2)
    np.testing.assert_allclose(Pipeline(model, micro_batches=8).predict(x).numpy(), model(x).detach().numpy())
