"""Schedules with PyTorch's names train like the unsplit model, from stages cut by hand and by capture."""

import copy
import threading

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import (
    PipelineError,
    PipelineScheduleMulti,
    PipelineScheduleSingle,
    PipelineStage,
    PipeliningMetadataError,
    Replicate,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
    TensorChunkSpec,
    _Action,
    _ComputationType,
    _PipelineScheduleRuntime,
    _PipelineStageBase,
    _ScheduleForwardOnly,
    build_stage,
    get_schedule_class,
    pipe_split,
    pipeline,
    stage_ranks,
)
from retrograd.pipelining.transports import RankMismatchError

from .action_texts import ACTION_TEXTS
from .rank_threads import run_ranks

SINGLE = ("GPipe", "1F1B")
TRACING = threading.Lock()  # ranks are threads here, which share a model, and a trace changes it for a while
MULTI = ("Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV")


class Model(nn.Module):
    """Blocks with a boundary between every two."""

    def __init__(self, blocks):
        super().__init__()
        rg.manual_seed(0)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(blocks)])

    def forward(self, x):
        for number, block in enumerate(self.blocks):
            if number:
                pipe_split()
            x = block(x)
        return x


def by_hand(model, index, count, group):
    return PipelineStage(model.blocks[index], index, count, rg.device("cpu"), group=group)


def captured(model, index, count, group):
    with TRACING:
        return pipeline(model, (rg.ones(2, 6),)).build_stage(index, rg.device("cpu"), group)


def built(model, index, count, group):
    with TRACING:
        pipe = pipeline(model, (rg.ones(2, 6),))
        return build_stage(pipe.get_stage_module(index), index, pipe.info(), rg.device("cpu"), group)


def gradients(module):
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def trained(name, make, ranks, stages, micro_batches, rows=8):
    """Return losses, outputs and gradients of a step on ranks, and of the unsplit model."""
    model = Model(stages)
    rg.manual_seed(1)
    x, y = rg.randn(rows, 6), rg.randn(rows, 6)
    parts, homes = copy.deepcopy(model), stage_ranks(name, stages, ranks)

    def script(rank, group):
        mine = [make(parts, i, stages, group) for i in range(stages) if homes[i] == rank]
        kind = get_schedule_class(name)
        schedule = kind(mine[0] if issubclass(kind, PipelineScheduleSingle) else mine, micro_batches, loss_fn=mse_loss)
        losses = []
        first, last = homes[0] == rank, homes[-1] == rank
        out = schedule.step(*[x] * first, **({"target": y, "losses": losses} if last else {}))
        assert (out is not None) == last
        evaluated = schedule.eval(*[x] * first)
        return (losses, out, evaluated) if last else None

    results = run_ranks(ranks, script)
    mean = rg.stack(
        [mse_loss(a, b) for a, b in zip(model(x).chunk(micro_batches), y.chunk(micro_batches), strict=True)]
    )
    mean.mean().backward()
    return results[homes[-1]], (mean, model(x)), gradients(parts), gradients(model)


@pytest.mark.parametrize("make", [by_hand, captured, built])
@pytest.mark.parametrize("name", [*SINGLE, *MULTI])
def test_every_schedule_trains_as_the_unsplit_model(name, make):
    ranks = 2
    stages = ranks if name in SINGLE else 2 * ranks
    (losses, out, evaluated), (expected, whole), found, wanted = trained(name, make, ranks, stages, 4)
    assert rg.allclose(rg.stack(losses), expected, atol=1e-6)
    assert rg.allclose(out, whole, atol=1e-6)
    assert rg.allclose(evaluated, whole, atol=1e-6)
    assert found.keys() == wanted.keys()
    assert all(rg.allclose(found[name], wanted[name], atol=1e-6) for name in wanted)


@pytest.mark.parametrize("make", [by_hand, captured])
def test_microbatches_may_be_few_and_uneven(make):
    for micro_batches, rows in ((1, 3), (2, 5)):
        (losses, out, _), (expected, whole), _, _ = trained("1F1B", make, 3, 3, micro_batches, rows)
        assert rg.allclose(rg.stack(losses), expected, atol=1e-6)
        assert rg.allclose(out, whole, atol=1e-6)


def alone(model, count=2, **options):
    return [PipelineStage(part, i, count, "cpu", **options) for i, part in enumerate(model)]


def test_gradients_are_divided_by_the_microbatches_only_with_scale_grads():
    x, y, found = rg.randn(4, 6), rg.randn(4, 6), []
    for scale in (True, False):
        model = Model(2)
        ScheduleLoopedBFS(alone(model.blocks), 2, mse_loss, scale_grads=scale).step(x, target=y)
        found.append(gradients(model))
    assert all(rg.allclose(2 * found[0][name], found[1][name], atol=1e-6) for name in found[0])


def test_keyword_arguments_reach_every_stage_and_specs_split_them():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x, *, scale, table=None):
            return self.linear(x) * scale + table.sum()

    a, b = Scaled(), Scaled()
    x, scale, table = rg.randn(4, 3), rg.randn(3, 4), rg.ones(7)
    spec = {"scale": TensorChunkSpec(1), "table": Replicate()}

    class TransposingScale(Scaled):
        def forward(self, x, *, scale, table):
            return super().forward(x, scale=scale.T, table=table)

    a.__class__ = b.__class__ = TransposingScale
    schedule = ScheduleInterleaved1F1B(alone([a, b]), 2, kwargs_chunk_spec=spec)
    out = schedule.step(x, scale=scale, table=table)
    expected = b(a(x, scale=scale, table=table), scale=scale, table=table)
    assert rg.allclose(out, expected, atol=1e-6)


def test_stages_pass_several_tensors_on():
    class Two(nn.Module):
        def forward(self, a, b=None):
            b = a if b is None else b
            return a + 1, b * a

    x = rg.randn(4, 2)
    first, second = ScheduleInterleaved1F1B(alone([Two(), Two()]), 2).step(x)
    assert rg.allclose(first, x + 2)
    assert rg.allclose(second, x * x * (x + 1))


def test_gradients_continue_into_the_graph_of_the_inputs():
    weight = rg.ones(6, requires_grad=True)
    model, x, y = Model(2), rg.randn(4, 6), rg.randn(4, 6)
    ScheduleInterleaved1F1B(alone(model.blocks), 2, mse_loss).step(x * weight, target=y)
    found, weight.grad = weight.grad, None
    mse_loss(model(x * weight), y).backward()
    assert rg.allclose(found, weight.grad, atol=1e-6)


def test_losses_take_arguments_and_outputs_may_be_left_out():
    def loss_fn(out, target, factor):
        return factor * mse_loss(out, target)

    model, x, y, losses = Model(1), rg.randn(4, 6), rg.randn(4, 6), [7]
    schedule = ScheduleGPipe(alone(model.blocks, 1)[0], 2, loss_fn)
    out = schedule.step(x, target=y, losses=losses, loss_kwargs={"factor": 3.0}, return_outputs=False)
    assert out is None
    assert rg.allclose(rg.stack(losses).mean(), 3 * mse_loss(model(x), y), atol=1e-6)


def test_evaluation_computes_losses_and_no_gradients():
    model, x, y, losses = Model(2), rg.randn(4, 6), rg.randn(4, 6), []
    schedule = ScheduleInterleaved1F1B(alone(model.blocks), 2, mse_loss)
    with rg.no_grad():
        schedule.eval(x, target=y, losses=losses)
        with pytest.raises(RuntimeError, match=r"requires gradients to be enabled .* Please call eval"):
            schedule.step(x, target=y)
    assert rg.allclose(rg.stack(losses).mean(), mse_loss(model(x), y), atol=1e-6)
    assert gradients(model) == {}


def test_an_order_from_a_file_runs_and_an_order_is_written(tmp_path):
    model, x, y = Model(2), rg.randn(4, 6), rg.randn(4, 6)
    ScheduleInterleaved1F1B(alone(model.blocks), 2, mse_loss)._dump_csv(str(tmp_path / "order.csv"))
    schedule, losses = PipelineScheduleMulti(alone(model.blocks), 2, mse_loss), []
    with pytest.raises(RuntimeError, match="PipelineScheduleMulti has no order"):
        schedule.step(x, target=y)
    schedule._load_csv(str(tmp_path / "order.csv"))
    schedule.step(x, target=y, losses=losses)
    assert rg.allclose(rg.stack(losses).mean(), mse_loss(model(x), y), atol=1e-6)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            {"input_args": rg.ones(2, 5)},
            r"stage 0: forward input 0: shape mismatch: expected float32\[2, 5\], got float32\[2, 6\]",
        ),
        (
            {"output_args": (rg.ones(2, 6, dtype=rg.float64),)},
            r"stage 0: forward output 0: dtype mismatch: expected float64\[2, 6\]",
        ),
        ({"input_args": (rg.ones(2, 6), rg.ones(2))}, "stage 0: forward inputs: 2 are declared, got 1"),
    ],
)
def test_tensors_unlike_the_declared_ones_are_refused_by_stage(declared, message):
    schedule = ScheduleInterleaved1F1B(alone(Model(2).blocks, **declared), 2)
    with pytest.raises(PipeliningMetadataError, match=message) as caught:
        schedule.step(rg.ones(4, 6))
    assert isinstance(caught.value, PipelineError)
    assert isinstance(caught.value.__cause__, PipeliningMetadataError)


def test_declared_tensors_leave_the_batch_size_open():
    example = rg.ones(2, 6)
    schedule = ScheduleInterleaved1F1B(alone(Model(2).blocks, input_args=example, output_args=(example,)), 2)
    assert schedule.step(rg.ones(7, 6)).shape == (7, 6)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda s: ScheduleGPipe(s[0], 2), ValueError, r"runs the stages \[0, 1\] of 2, but was given \[0\]"),
        (lambda s: ScheduleInterleaved1F1B([], 2), ValueError, "at least one stage"),
        (lambda s: ScheduleInterleaved1F1B(s, 0), ValueError, "n_microbatches must be an integer of at least 1, got 0"),
        (lambda s: ScheduleGPipe(Model(1), 2), TypeError, "expected a PipelineStage, got Model"),
        (lambda s: ScheduleInterleaved1F1B(s, 2).step(rg.ones(4, 6), losses=()), TypeError, "losses must be a list"),
        (lambda s: ScheduleInterleaved1F1B(s, 5).step(rg.ones(4, 6)), ValueError, "a batch of 4 examples can't make 5"),
        (lambda s: ScheduleInterleaved1F1B(s, 2, mse_loss).step(rg.ones(4, 6)), PipelineError, "needs a target"),
        (lambda s: ScheduleInterleaved1F1B(s, 2).step(), PipelineError, "missing 1 required positional argument"),
        (lambda s: PipelineStage(s[0].submod, 2, 2, "cpu"), ValueError, "Stage index 2 is out of range of 2"),
        (lambda s: get_schedule_class("no"), ValueError, "Unknown schedule name 'no'. The valid options are"),
    ],
)  # fmt: skip
def test_schedules_that_can_not_run_are_refused_by_name(make, kind, message):
    with pytest.raises(kind, match=message):
        make(alone(Model(2).blocks))


ORDERS = {
    "there and back": ("0F0 - - 3F0 3B0 - - 0B0", "- 1F0 2F0 - - 2B0 1B0"),
    "unequal ranks": ("0F0 1F0 - - 4F0 4B0 - - 1B0 0B0", "- - 2F0 3F0 - - 3B0 2B0"),
    "halves": ("0F0 0F1 2F0 2I0 2W0 2F1 0I0 2I1 0W0 0I1 2W1 0W1", "1F0 1F1 1I0 1W0 1I1 1W1"),
    "pairs": ("0F0 (0F1;0B0)OVERLAP_F_B 0B1", "1F0 1B0 1F1 1B1"),
}


@pytest.mark.parametrize("rows", ORDERS.values(), ids=ORDERS)
def test_a_subclass_assigns_an_order_of_its_own(rows):
    order = {rank: [None if text == "-" else _Action.from_str(text) for text in row.split()]
             for rank, row in enumerate(rows)}  # fmt: skip

    class Own(PipelineScheduleMulti):
        def __init__(self, stages, n_microbatches, **options):
            super().__init__(stages, n_microbatches, **options)
            self.pipeline_order = order

    actions = {action for row in order.values() for action in row if action is not None and action.stage_index >= 0}
    homes = {action.stage_index: rank for rank, row in order.items() for action in row if action in actions}
    count = 1 + max(action.microbatch_index for action in actions)
    model, x, y = Model(len(homes)), rg.randn(4, 6), rg.randn(4, 6)

    def run(rank, group):
        stages = [PipelineStage(model.blocks[i], i, len(homes), "cpu", group=group)
                  for i, home in homes.items() if home == rank]  # fmt: skip
        schedule = Own(stages, count, loss_fn=mse_loss)
        assert schedule.stage_index_to_group_rank == homes
        assert schedule.pipeline_order == order
        return schedule.step(*([x] if homes[0] == rank else []), target=y)

    out = run_ranks(2, run)[homes[len(homes) - 1]]
    mine = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    expected = model(x)
    mse_loss(expected, y).backward()
    assert rg.allclose(out, expected, atol=1e-6)
    assert all(rg.allclose(a, p.grad, atol=1e-6) for a, p in zip(mine, model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0F0 0F0", "pipeline_order, line 1, column 2: F0.0 is at line 1, column 1 already"),
        ("0F0 0B0", "edge 0 -> 1: no rank computes stage 1"),
        ("", "pipeline_order: there are no actions"),
    ],
)
def test_an_order_for_other_stages_is_refused(rows, message):
    schedule = PipelineScheduleMulti(alone(Model(2).blocks), 1)
    with pytest.raises(ValueError, match=message):
        schedule.pipeline_order = {0: [_Action.from_str(text) for text in rows.split()]}
    with pytest.raises(RuntimeError, match="has no order"):
        _ = schedule.pipeline_order


@pytest.mark.parametrize("name", ["Interleaved1F1B", "InterleavedZeroBubble"])
def test_weights_that_a_backward_postpones_are_computed_by_the_functions_of_dw_builder(name):
    waiting, order = [], []

    class Late(rg.autograd.Function):
        """A product whose weight gradient is postponed."""

        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            waiting.append((x, g))
            order.append("input")
            return g @ w.T, None

    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(rg.randn(6, 6))

        def forward(self, x):
            return Late.apply(x, self.w)

    def dw_builder():
        x, g = waiting.pop()

        def runner():
            order.append("weight")
            model.w.grad = x.T @ g if model.w.grad is None else model.w.grad + x.T @ g

        return runner

    model, x, y = Product(), rg.randn(6, 6), rg.randn(6, 6)
    stage = PipelineStage(model, 0, 1, "cpu", dw_builder=dw_builder)
    get_schedule_class(name)([stage], 3, loss_fn=mse_loss).step(x, target=y)
    expected = model.w.detach().clone().requires_grad_()
    mse_loss(x @ expected, y).backward()
    assert rg.allclose(model.w.grad, expected.grad, atol=1e-6)
    assert sorted(order) == ["input"] * 3 + ["weight"] * 3
    assert not waiting


def test_the_last_stage_keeps_the_results_of_the_last_step():
    stages, x = alone(Model(2).blocks), rg.randn(4, 6)
    schedule = ScheduleInterleaved1F1B(stages, 2, loss_fn=mse_loss)
    for _ in range(2):
        out = schedule.step(x, target=rg.randn(4, 6))
    assert [len(stage.output_chunks) for stage in stages] == [0, 2]
    assert rg.cat(stages[1].output_chunks).tolist() == out.tolist()
    assert all(len(stage.fwd_cache) == 0 for stage in stages)
    stages[1].clear_runtime_states()
    assert stages[1].output_chunks == []


def test_stages_have_pytorchs_attributes():
    stage = alone(Model(2).blocks)[1]
    assert isinstance(stage, _PipelineStageBase)
    assert (stage.stage_index, stage.num_stages, stage.is_first, stage.is_last) == (1, 2, False, True)
    assert isinstance(stage.submod, nn.Sequential)


def test_actions_have_pytorchs_text():
    for text in ACTION_TEXTS:
        assert repr(_Action.from_str(text)) == str(_Action.from_str(text)) == text
    action = _Action.from_str("3SEND_F1")
    assert action == (3, _ComputationType.SEND_F, 1, None)
    assert not action.is_compute_op
    assert _Action.from_str("") is None
    with pytest.raises(RuntimeError, match="Invalid action string: 2X1"):
        _Action.from_str("2X1")


def test_the_error_for_a_missing_input_of_a_captured_stage_names_it():
    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x, mask):
            x = self.a(x)
            pipe_split()
            return self.b(x) * mask

    model, x, mask = Late(), rg.randn(4, 6), rg.randn(4, 6)

    def script(given):
        def run(rank, group):
            with TRACING:
                stage = pipeline(model, (x[:2], mask[:2])).build_stage(rank, "cpu", group)
            return ScheduleGPipe(stage, 2).step(*([x, mask] if rank == 0 else []), **(given if rank == 1 else {}))

        return run

    assert rg.allclose(run_ranks(2, script({"mask": mask}))[1], model(x, mask), atol=1e-6)
    with pytest.raises(PipelineError, match="stage 1 takes the model's input 'mask', which this rank was not given"):
        run_ranks(2, script({}))


def test_ranks_with_other_numbers_of_microbatches_all_end_with_an_error_that_names_them():
    def run(rank, group):
        stage = PipelineStage(rg.nn.Linear(4, 4), rank, 2, "cpu", group=group)
        schedule = ScheduleGPipe(stage, 2 + rank, rg.nn.functional.mse_loss)
        with pytest.raises(RankMismatchError, match=r"n_microbatches: 2 on rank 0; 3 on rank 1"):
            schedule.step(*([rg.ones(6, 4)] if rank == 0 else []), target=rg.ones(6, 4))
        return True

    assert run_ranks(2, run) == [True, True]


class Sharded(nn.Linear):
    """A module that records the calls that gather and drop its shards."""

    def __init__(self):
        super().__init__(6, 6)
        self.calls = []

    def unshard(self):
        self.calls.append("unshard")

    def reshard(self):
        self.calls.append("reshard")

    def forward(self, x):
        self.calls.append("forward")
        return super().forward(x)


def test_the_actions_around_computations_call_the_stage_and_its_module():
    class Stage(PipelineStage):
        def perform_reduce_grad(self, grad_scale_factor):
            self.submod.calls.append(grad_scale_factor)

    module = Sharded()
    schedule = _PipelineScheduleRuntime([Stage(module, 0, 1, "cpu")], 2, mse_loss)
    order = "0UNSHARD 0F0 0RESHARD 0UNSHARD 0F1 0I0 0W0 0B1 0REDUCE_GRAD 0RESHARD"
    schedule._prepare_schedule_with_comms({0: [_Action.from_str(a) for a in order.split()]}, format="compute_comms")
    schedule.step(rg.ones(4, 6), target=rg.zeros(4, 6))
    assert module.calls == ["unshard", "forward", "reshard", "unshard", "forward", 2, "reshard"]
    module.calls.clear()
    schedule.eval(rg.ones(4, 6))
    assert module.calls == ["forward", "forward"]


def test_stages_of_one_rank_run_without_a_schedule():
    model, x = Model(2), rg.randn(3, 6)
    expected = copy.deepcopy(model)
    expected(x).square().sum().backward()
    first, last = (PipelineStage(block, i, 2, "cpu") for i, block in enumerate(model.blocks))
    first.has_backward = last.has_backward = True
    last.set_local_fwd_input(first.forward_one_chunk(0, (x,)), 0)
    last.backward_one_chunk(0, loss=last.forward_one_chunk(0, ()).square().sum(), full_backward=False)
    assert not gradients(last.submod)
    last.backward_weight_one_chunk(0)
    first.set_local_bwd_input(last.get_local_bwd_output(0), 0)
    first.backward_one_chunk(0)
    found, wanted = gradients(model), gradients(expected)
    assert found.keys() == wanted.keys()
    assert all(rg.allclose(found[name], wanted[name], atol=1e-6) for name in wanted)
    with pytest.raises(AssertionError, match="without first calling `backward_one_chunk"):
        last.backward_weight_one_chunk(0)


def test_a_forward_only_schedule_refuses_losses():
    schedule = _ScheduleForwardOnly(PipelineStage(nn.Linear(6, 2), 0, 1, "cpu"), 2)
    assert schedule.step(rg.ones(4, 6)).shape == (4, 2)
    with pytest.raises(RuntimeError, match="Forward-only schedule does not support loss computation"):
        schedule.step(rg.ones(4, 6), target=rg.ones(4, 2))


def test_orders_with_transfers_survive_files(tmp_path):
    stage = PipelineStage(nn.Linear(6, 6), 0, 1, "cpu")
    written, read = (_PipelineScheduleRuntime([stage], 2, mse_loss) for _ in range(2))
    written._prepare_schedule_with_comms({0: [_Action.from_str(a) for a in ["0F0", "0F1", "0B0", "0B1"]]})
    written._dump_csv(tmp_path / "order.csv")
    read._load_csv(tmp_path / "order.csv", format="compute_comms")
    assert read.pipeline_order_with_comms == written.pipeline_order_with_comms
    assert [str(a) for a in read.pipeline_order_with_comms[0]] == [
        "0UNSHARD", "0F0", "0F1", "0B0", "0B1", "0REDUCE_GRAD", "0RESHARD",
    ]  # fmt: skip
    assert read.step(rg.ones(4, 6), target=rg.zeros(4, 6)).shape == (4, 6)
