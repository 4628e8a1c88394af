"""`explain` reports groups, memory traffic, buffers and times, as text and as a page."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels, nn

from .comparison import classifier_step, numbers, observe, state_of


def training_step():
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = rg.optim.Adam(model.parameters())
    return classifier_step(model, optimizer), list(model.parameters())


def test_traffic_is_that_of_the_arrays_of_each_call():
    x = numbers(1000)
    (group,) = rg.compiler.explain(lambda x: (x * 2).sin() + 1)(x).groups
    assert (group.kind, group.ops) == ("fused", ("mul", "sin", "add"))
    assert (group.passes, group.bytes) == (2, 8000)
    assert (group.eager_passes, group.eager_bytes) == (6, 24000)
    assert group.seconds is None


def test_views_have_no_traffic_and_writes_do():
    x, y = numbers(10, 10), numbers(10, 10)
    groups = rg.compiler.explain(lambda x, y: y.copy_(x.mT.exp()))(x, y).groups
    assert sum(g.eager_passes for g in groups) == 4
    assert sum(g.eager_bytes for g in groups) == 1600
    assert [g.kind for g in groups][-1] == "write"


@pytest.mark.skipif(not kernels.compiled, reason="plans of the plain build have no memory plan")
def test_buffers_are_those_of_the_plan():
    a = numbers(8, 8)
    (group,) = rg.compiler.explain(lambda x: ((x @ a).relu() @ a).sum(0) @ a)(numbers(8, 8)).groups
    assert group.kind == "plan"
    assert group.buffers.results == 8 * 4
    assert group.buffers.own == 0
    assert 256 <= group.buffers.block < group.buffers.in_block


def test_a_call_with_a_program_is_run_by_it_once_and_timed():
    rg.manual_seed(0)
    step, params = training_step()
    rg.manual_seed(0)
    twin, others = training_step()
    compiled, x, y = rg.compile(step), numbers(4, 5), rg.tensor([0, 1, 2, 1])
    for _ in range(3):
        compiled(x, y), twin(x, y)
    programs = len(compiled.programs)
    report = rg.compiler.explain(compiled)(x, y)
    twin(x, y)
    assert len(compiled.programs) == programs
    assert [state[0][0] for state in state_of(params)] == [state[0][0] for state in state_of(others)]
    assert all(g.seconds >= 0 and g.start >= 0 for g in report.groups)
    assert 0 < sum(g.seconds for g in report.groups) <= report.seconds
    starts = [g.start for g in report.groups]
    assert starts == sorted(starts)
    names = [name for g in report.groups for name in g.ops]
    assert {"Optimizer.step", "Optimizer.zero_grad", "mean_class_loss"} <= set(names)
    assert "Time: " in str(report)
    assert "eager: Optimizer.step" in str(report)


def test_the_page_has_a_row_for_each_call_and_escapes_names():
    compiled = rg.compile(lambda x: (x * 2).sin().sum() + x.max())
    x = numbers(50)
    compiled(x)
    report = rg.compiler.explain(compiled)(x)
    page = report.to_html()
    assert page == report._repr_html_()
    assert page.count("<tr>") == len(report.groups) + 1
    assert page.count('class="bar"') == len(report.groups)
    assert "def play(p0):" in page
    refused = rg.compiler.explain(lambda x: x * x.sum().item())(x)
    assert "&lt;lambda&gt;" in refused.to_html()
    assert "<table>" not in refused.to_html()


def test_an_explained_call_leaves_results_as_they_are():
    f = lambda x: (x * 2).sin().sum()  # noqa: E731
    compiled, x = rg.compile(f), numbers(5)
    before = observe(compiled(x))
    rg.compiler.explain(compiled)(x)
    assert observe(compiled(x)) == before
    with np.errstate(all="raise"):
        assert rg.compiler.explain(compiled)(x).seconds > 0


def test_a_program_that_runs_in_a_loop_is_counted_once_with_the_sum_of_its_times():
    def f(x):
        total = 0.0
        for _ in range(3):
            x = x.sin() * 2
            total += x.sum().item()
        return x.cos() * total

    compiled = rg.compile(f)
    with pytest.warns(UserWarning, match="in parts"):
        compiled(numbers(5))
    compiled(numbers(5))
    report = rg.compiler.explain(compiled)(numbers(5))
    assert (report.graph_count, report.op_count, report.runs) == (2, 5, (3, 1))
    assert str(report).startswith("2 programs of 5 operators, run 4 times: 2 mul, 1 sin, 1 sum, 1 cos\n")
    assert report.code.count("def play") == 2
    assert 0 < sum(group.seconds for group in report.groups) <= report.seconds
