"""The promises that PyTorch's own tests of stages and schedules make, each kept by both libraries, on one rank."""

import copy

import pytest
import torch.distributed as dist
from torch.distributed import pipelining as theirs
from torch.distributed.pipelining import schedules, stage

from .pipelining.common import numbers
from .test_pipelining_promises_parity import OURS, TORCH, close

vars(TORCH).update({n: getattr(m, n) for m in (stage, schedules, theirs) for n in dir(m) if not n.startswith("__")})
ONE_STAGE = ("GPipe", "1F1B")
NAMES = (*ONE_STAGE, "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV")


@pytest.fixture(scope="module", autouse=True)
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture(params=[TORCH, OURS], ids=["torch", "retrograd"])
def p(request):
    return request.param


def block(p, *, inner=4, outer=4, seed=0):
    """Return a linear layer with tanh."""
    nn = p.L.nn
    made = nn.Sequential(nn.Linear(inner, outer), nn.Tanh()).to(p.L.float64)
    with p.L.no_grad():
        made[0].weight.copy_(numbers(p.L, outer, inner, seed=seed))
        made[0].bias.copy_(numbers(p.L, outer, seed=seed + 1))
    return made


def loss_of(p):
    return p.L.nn.MSELoss(reduction="mean")


def make_stage(p, module, **options):
    return p.PipelineStage(module, 0, 1, p.L.device("cpu"), **options)


def data(p):
    return numbers(p.L, 8, 4, seed=3), numbers(p.L, 8, 4, seed=4)


@pytest.mark.parametrize("name", ONE_STAGE)
def test_a_step_has_the_losses_outputs_and_gradients_of_the_model(p, name):
    model, (x, y), losses = block(p), data(p), []
    reference = copy.deepcopy(model)
    out = p.get_schedule_class(name)(make_stage(p, model), 4, loss_fn=loss_of(p)).step(x, target=y, losses=losses)
    expected = reference(x)
    parts = [loss_of(p)(a, b) for a, b in zip(expected.chunk(4), y.chunk(4), strict=True)]
    assert close(p, out, expected)
    assert all(close(p, a, b) for a, b in zip(losses, parts, strict=True))
    (sum(parts) / 4).backward()
    assert close(p, model[0].weight.grad, reference[0].weight.grad)
    assert close(p, model[0].bias.grad, reference[0].bias.grad)


@pytest.mark.parametrize("name", ONE_STAGE)
def test_gradients_of_two_steps_add_up_unless_they_are_scaled_again(p, name):
    model, (x, y) = block(p), data(p)
    schedule = p.get_schedule_class(name)(make_stage(p, model), 2, loss_fn=loss_of(p), scale_grads=False)
    schedule.step(x, target=y)
    once = model[0].weight.grad.clone()
    schedule.step(x, target=y)
    assert close(p, model[0].weight.grad, once * 2)


def test_losses_are_replaced_in_the_list(p):
    model, (x, y), losses = block(p), data(p), [1, 2, 3]
    schedule = p.ScheduleGPipe(make_stage(p, model), 4, loss_fn=loss_of(p))
    for _ in range(2):
        schedule.step(x, target=y, losses=losses)
        assert len(losses) == 4
    with pytest.raises(TypeError, match="losses must be a list"):
        schedule.step(x, target=y, losses=(1,))


def test_outputs_are_returned_unless_return_outputs_is_false(p):
    x, y = data(p)
    schedule = p.ScheduleGPipe(make_stage(p, block(p)), 2, loss_fn=loss_of(p))
    assert schedule.step(x, target=y, return_outputs=False) is None
    assert tuple(schedule.step(x, target=y).shape) == (8, 4)


def test_the_loss_gets_keyword_arguments(p):
    x, y = data(p)

    def scaled(output, target, factor=1.0):
        return loss_of(p)(output, target) * factor

    found = []
    for options in ({}, {"loss_kwargs": {"factor": 3.0}}):
        losses = []
        schedule = p.ScheduleGPipe(make_stage(p, block(p)), 2, loss_fn=scaled)
        schedule.step(x, target=y, losses=losses, **options)
        found.append(losses)
    assert all(close(p, a * 3.0, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("name", ONE_STAGE)
def test_a_step_without_gradients_is_refused_and_eval_runs(p, name):
    model, (x, y), losses = block(p), data(p), []
    schedule = p.get_schedule_class(name)(make_stage(p, model), 2, loss_fn=loss_of(p))
    with (
        p.L.no_grad(),
        pytest.raises(RuntimeError, match=r"step\(\) requires gradients to be enabled for backward computation"),
    ):
        schedule.step(x, target=y)
    out = schedule.eval(x, target=y, losses=losses)
    assert close(p, out, model(x))
    assert len(losses) == 2
    assert model[0].weight.grad is None


def test_keyword_arguments_and_specs_split_the_batch(p):
    class Scaled(p.L.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = block(p)

        def forward(self, x, *, by, plus):
            return self.inner(x) * by.transpose(0, 1) + plus

    x, _ = data(p)
    by, plus = numbers(p.L, 4, 8, seed=6), numbers(p.L, 1, 4, seed=7)
    model = Scaled()
    specs = {"by": p.TensorChunkSpec(1), "plus": p._Replicate()}
    schedule = p.ScheduleGPipe(
        make_stage(p, model), 4, args_chunk_spec=p.TensorChunkSpec.from_tuple((0,)), kwargs_chunk_spec=specs
    )
    assert close(p, schedule.step(x, by=by, plus=plus), model(x, by=by, plus=plus))


def test_outputs_are_merged_by_a_spec(p):
    class Transposing(p.L.nn.Module):
        def forward(self, x):
            return x.transpose(0, 1)

    x, _ = data(p)
    schedule = p.ScheduleGPipe(make_stage(p, Transposing()), 4, output_merge_spec=p.TensorChunkSpec.from_tuple((1,))[0])
    assert close(p, schedule.step(x), x.transpose(0, 1))


def test_a_stage_says_which_it_is(p):
    module = block(p)
    first = p.PipelineStage(module, 0, 3, p.L.device("cpu"))
    assert (first.is_first, first.is_last, first.stage_index, first.num_stages) == (True, False, 0, 3)
    assert first.submod is module
    assert p.PipelineStage(module, 2, 3, p.L.device("cpu")).is_last
    assert isinstance(first, p._PipelineStageBase)


@pytest.mark.parametrize("index", [1, 5])
def test_a_stage_that_does_not_exist_is_refused(p, index):
    with pytest.raises(ValueError, match=f"Stage index {index} is out of range of 1"):
        p.PipelineStage(block(p), index, 1, p.L.device("cpu"))


@pytest.mark.parametrize("name", NAMES)
def test_schedules_are_found_by_name_in_any_case(p, name):
    for spelled in (name, name.lower(), name.upper()):
        assert p.get_schedule_class(spelled).__name__ == f"Schedule{name}"


@pytest.mark.parametrize("name", ["", "GPipe2", "Schedule1F1B"])
def test_unknown_schedules_are_refused(p, name):
    with pytest.raises(ValueError, match="Unknown schedule name"):
        p.get_schedule_class(name)


def test_base_classes_have_names_too(p):
    assert p.get_schedule_class("PipelineScheduleSingle") is p.PipelineScheduleSingle
    assert p.get_schedule_class("PipelineScheduleMulti") is p.PipelineScheduleMulti


TEXTS = ["0F0", "12I3", "2W0", "1B7", "3UNSHARD", "3RESHARD", "1SEND_F2", "1RECV_B10", "2REDUCE_GRAD",
         "(0F1;1B2)OVERLAP_F_B"]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_actions_are_read_and_written(p, text):
    action = p._Action.from_str(text)
    assert str(action) == repr(action) == text
    assert p._Action.from_str(str(action)) == action


@pytest.mark.parametrize("text", ["F0", "1Q2", "abc", "1F", "(0F1)"])
def test_texts_of_no_action_give_the_same_outcome(text):
    found = []
    for p in (TORCH, OURS):
        try:
            found.append(str(p._Action.from_str(text)))
        except Exception as error:
            found.append(type(error).__name__)
    assert found[0] == found[1]


def test_kinds_are_read(p):
    for text in ("F", "I", "W", "B", "UNSHARD", "RESHARD", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "OVERLAP_F_B"):
        assert p._ComputationType.from_str(text).value == text
    with pytest.raises(RuntimeError, match="Invalid computation type"):
        p._ComputationType.from_str("X")


def test_output_chunks_are_dropped_with_the_runtime_states(p):
    made = make_stage(p, block(p))
    p.ScheduleGPipe(made, 2).step(data(p)[0])
    made.clear_runtime_states()
    assert len(made.output_chunks) == 0
