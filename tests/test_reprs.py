"""Objects that users print say what they are: numbers and settings, not an address in memory."""

import html
import re

import pytest
from tests.browser import chromium, needs_browser

import retrograd as rg
from retrograd import nn
from retrograd.optim import SGD, lr_scheduler
from retrograd.pipelining import (
    Action,
    Event,
    Kind,
    Pipeline,
    ScheduleGPipe,
    SplitPoint,
    Timeline,
    TimelineRecorder,
    get_schedule,
    pipeline,
    plan,
)
from retrograd.pipelining.planning.schedule_search import search_schedule
from retrograd.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, TensorDataset


def optimizer(**settings):
    return SGD([rg.ones(1, requires_grad=True)], lr=0.1, **settings)


class Endless(IterableDataset):
    def __iter__(self):
        return iter(())


def two_stages():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    return pipeline(model, (rg.ones(2, 2),), split_spec={"1": SplitPoint.BEGINNING})


def profiled(function):
    with rg.autograd.profiler.profile() as found:
        function(rg.ones(2))
    return found


def exported():
    sizes = ({0: rg.export.Dim("batch")},)
    return rg.export.export(nn.Linear(2, 3), (rg.ones(4, 2),), dynamic_shapes=sizes)


def stepped(recorder=False):
    loss = lambda y, t: (y - t).square().sum()  # noqa: E731
    pipe = Pipeline(nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)), 2, micro_batches=2, loss_fn=loss)
    with TimelineRecorder(pipe) as found:
        pipe.step(rg.ones(2, 1), target=rg.ones(2, 1))
    return found if recorder else pipe


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
    "TensorDataset(10 examples)": lambda: TensorDataset(rg.ones(10, 2)),
    "Subset(2 examples)": lambda: Subset(TensorDataset(rg.ones(10, 2)), [0, 1]),
    "ConcatDataset(6 examples)": lambda: ConcatDataset([TensorDataset(rg.ones(3, 2))] * 2),
    "ScheduleKind('1F1B', order=one_f_one_b, place=blocks, per_rank=1)": lambda: get_schedule("1f1b"),
    "# outputs\nlinear": lambda: exported().graph_signature,
    "profile(no results yet)": lambda: rg.profiler.profile(),
    "profile(2 events)": lambda: profiled(lambda x: x + 1),
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


IN_NOTEBOOKS = {
    "profile": (lambda: profiled(lambda x: x + 1), ("<td>add</td>", "Self CPU time total")),
    "averages": (lambda: profiled(lambda x: x + 1).key_averages(), ("<td>add</td>", "<th># of Calls</th>")),
    "exported program": (exported, ("float32[batch, 2]", ">parameter<", "batch: [", "ops.linear")),
    "plan": (
        lambda: plan(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), (rg.ones(4, 2),), ranks=2, micro_batches=2),
        ("<th>schedule</th>", "<th>parameters</th>", "1F1B"),
    ),
    "found schedule": (lambda: search_schedule(2, 2, lambda action: 1.0, seconds=0.01), ("<th>peak</th>", "GPipe")),
    "explanation": (lambda: rg.compiler.explain(lambda x: x * 2 < 3)(rg.ones(2)), ("<th>buffers</th>",)),
    "pipeline": (stepped, ("Pipeline(Sequential, stages=2", "<iframe")),
    "recorder": (lambda: stepped(recorder=True), ("<iframe",)),
    "tensor": (lambda: rg.ones(2, 3), ("tensor of shape (2, 3)", "<td>1</td>")),
}


@pytest.mark.parametrize("name", IN_NOTEBOOKS)
def test_reports_are_tables_in_notebooks(name):
    make, parts = IN_NOTEBOOKS[name]
    shown = make()._repr_html_()
    assert [part for part in parts if part not in shown] == []


def test_a_profile_without_results_is_shown_as_text():
    assert rg.profiler.profile()._repr_html_() is None
    with rg.autograd.profiler.profile() as running:
        assert running._repr_html_() is None


@needs_browser
@pytest.mark.parametrize(("text", "background"), [("rgb(17, 17, 17)", "#fff"), ("rgb(221, 221, 221)", "#111")])
def test_tables_take_the_colors_of_the_notebook_and_scroll_where_it_is_narrow(text, background, tmp_path):
    shown = [make()._repr_html_() for name, (make, _) in IN_NOTEBOOKS.items() if name not in ("pipeline", "recorder")]
    page = tmp_path / "page.html"
    page.write_text(f'<meta charset="utf-8"><body style="color:{text};background:{background}">{"".join(shown)}')
    with chromium() as driver:
        driver.get(page.as_uri())
        for width in (1200, 500):
            driver.set_window_size(width, 900)
            needed, given = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            assert needed <= given
        found = driver.execute_script(
            "return [...document.querySelectorAll('th, td, pre')].map(x => [getComputedStyle(x).color, "
            "getComputedStyle(x).backgroundColor])"
        )
    assert {color for color, _ in found} == {text}
    assert all(under == "rgba(0, 0, 0, 0)" or "0.08" in under for _, under in found)
