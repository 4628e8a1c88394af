"""Objects that users print say what they are: numbers and settings, not an address in memory."""

import html
import re

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.optim import SGD, lr_scheduler
from retrograd.pipelining import Action, Event, Kind, Pipeline, ScheduleGPipe, SplitPoint, Timeline, pipeline
from retrograd.utils.data import DataLoader, IterableDataset, TensorDataset


def optimizer(**settings):
    return SGD([rg.ones(1, requires_grad=True)], lr=0.1, **settings)


class Endless(IterableDataset):
    def __iter__(self):
        return iter(())


def two_stages():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    return pipeline(model, (rg.ones(2, 2),), split_spec={"1": SplitPoint.BEGINNING})


TIMELINE = Timeline([Event(0, Action(Kind.F, 0, 0), 0.0, 1.0), Event(1, Action(Kind.F, 1, 0), 1.0, 2.0)], ranks=2)
PRINTED = {
    "Generator(seed=3)": lambda: rg.Generator(3),
    "DataLoader(TensorDataset of 10, batch_size=4, sampler=RandomSampler, num_workers=0)": lambda: DataLoader(
        TensorDataset(rg.ones(10, 2)), batch_size=4, shuffle=True
    ),
    "DataLoader(Endless, batch_size=2, sampler=": lambda: DataLoader(Endless(), batch_size=2),
    "StepLR(step_size=3, gamma=0.1, base_lrs=[0.1], last_epoch=0, last_lr=[0.1])": lambda: lr_scheduler.StepLR(
        optimizer(), 3
    ),
    "T_max=5": lambda: lr_scheduler.CosineAnnealingLR(optimizer(), 5),
    "patience=4": lambda: lr_scheduler.ReduceLROnPlateau(optimizer(), patience=4),
    "Pipeline(Sequential, stages=2, schedule='1f1b', micro_batches=4, ": lambda: Pipeline(
        nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)), 2, micro_batches=4
    ),
    "ScheduleGPipe(stage 0 of 1, n_microbatches=4)": lambda: ScheduleGPipe(
        pipeline(nn.Linear(2, 2), (rg.ones(2, 2),)).build_stage(0), 4
    ),
    "submod_pp_1": two_stages,
    "<All keys matched successfully>": lambda: nn.Linear(2, 2).load_state_dict(nn.Linear(2, 2).state_dict()),
    "_IncompatibleKeys(missing_keys=['weight'], unexpected_keys=['scale'])": lambda: nn.Linear(
        2, 2, bias=False
    ).load_state_dict({"scale": rg.ones(1)}, strict=False),
    "Timeline(ranks=2, actions=2, seconds=2, bubble=50%)": lambda: TIMELINE,
}


@pytest.mark.parametrize("words", PRINTED)
def test_an_object_is_printed_by_its_settings(words):
    shown = repr(PRINTED[words]())
    assert words in shown
    assert " at 0x" not in shown


SCHEDULES = [
    lr_scheduler.LambdaLR(optimizer(), lambda epoch: 1.0),
    lr_scheduler.ExponentialLR(optimizer(), 0.9),
    lr_scheduler.CyclicLR(optimizer(momentum=0.9), 0.1, 0.2),
    lr_scheduler.OneCycleLR(optimizer(momentum=0.9), 0.1, total_steps=5),
    lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(optimizer(), 3)]),
    lr_scheduler.MultiStepLR(optimizer(), [1, 2]),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: type(schedule).__name__)
def test_every_schedule_prints_its_learning_rate(schedule):
    shown = repr(schedule)
    assert shown.startswith(type(schedule).__name__ + "(")
    assert re.search(r"last_lr=\[[\d.]+\]", shown)
    assert " at 0x" not in shown


def test_a_timeline_is_displayed_in_notebooks_as_its_page(tmp_path):
    TIMELINE.to_html(tmp_path / "page.html")
    frame = TIMELINE._repr_html_()
    (page,) = re.findall(r'^<iframe srcdoc="([^"]*)" style="[^"]*"></iframe>$', frame)
    assert html.unescape(page) == (tmp_path / "page.html").read_text()


def test_an_empty_timeline_is_printed():
    assert repr(Timeline([], ranks=1)) == "Timeline(ranks=1, actions=0, seconds=0, bubble=0%)"
