"""`retrograd view` shows the timelines of files on one page."""

import re

import pytest

from retrograd.cli import main
from retrograd.pipelining import Kind, make_schedule, read_perfetto, simulate, write_html, write_perfetto
from retrograd.pipelining.schedules.lowering import chain

SECONDS = {Kind.F: 1e-3, Kind.B: 2e-3}


def step(schedule="1f1b"):
    return simulate(make_schedule(schedule, 4, 8), chain(4), lambda action: SECONDS.get(action.kind, 1e-4))


@pytest.fixture
def opened(monkeypatch):
    """Return the list of the addresses that are opened in the browser."""
    addresses = []
    monkeypatch.setattr("webbrowser.open", addresses.append)
    return addresses


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "zb-h1"])
def test_a_trace_is_read_back_as_it_was_written(schedule, tmp_path):
    write_perfetto(tmp_path / "step.json", {"planned": step(schedule)})
    (read,) = read_perfetto(tmp_path / "step.json").values()
    written = step(schedule)
    assert [(e.rank, e.action) for e in read.events] == [(e.rank, e.action) for e in written.events]
    assert [e.end for e in read.events] == pytest.approx([e.end - written.start for e in written.events])
    assert read.ranks == 4
    assert read.bubble() == pytest.approx(written.bubble())
    assert [peak for peak, _ in read.peak_memory()] == [peak for peak, _ in written.peak_memory()]


def test_two_runs_are_compared_on_one_page(tmp_path, capsys, opened):
    for name in ("before", "after"):
        write_perfetto(tmp_path / f"{name}.json", {"measured": step()})
    page = tmp_path / "page.html"
    assert main(["view", str(tmp_path / "before.json"), str(tmp_path / "after.json"), "--output", str(page)]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    assert opened == [page.resolve().as_uri()]
    names = re.findall(r'"name":"((?:before|after): measured)"', page.read_text())
    assert names == ["before: measured", "after: measured"]


def test_a_page_is_opened_as_it_is(tmp_path, opened):
    write_html(tmp_path / "step.html", {"planned": step()})
    assert main(["view", str(tmp_path / "step.html")]) == 0
    assert opened == [(tmp_path / "step.html").as_uri()]


def test_a_page_can_be_written_without_a_browser(tmp_path, opened):
    write_perfetto(tmp_path / "step.json", {"planned": step()})
    assert main(["view", str(tmp_path / "step.json"), "--no-open", "--output", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists()
    assert not opened


NO_TRACES = ["", "{", "[]", "{}", '{"traceEvents": 3}', '{"traceEvents": [{}]}', '{"traceEvents": []}', "[" * 100_000]


@pytest.mark.parametrize("text", NO_TRACES)
def test_a_file_that_is_no_trace_is_named(text, tmp_path, capsys, opened):
    file = tmp_path / "step.json"
    file.write_text(text)
    assert main(["view", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(file) in line
    assert "no trace of pipelines" in line
    assert not opened


def test_a_missing_file_and_a_page_among_others_are_named(tmp_path, capsys, opened):
    assert main(["view", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
    assert main(["view", str(tmp_path / "a.html"), str(tmp_path / "b.json")]) == 2
    assert "shown alone" in capsys.readouterr().err
    assert not opened
