"""Progress is shown as a bar in a terminal, as lines in logs, or not at all."""

import io
import sys
import types

import pytest

from retrograd.utils import progress


class Terminal(io.StringIO):
    """A file that claims to be a terminal."""

    def isatty(self):
        return True


def lines(work, **fields):
    file = io.StringIO()
    with progress(work, "training", file=file) as bar:
        for _ in range(work if isinstance(work, int) else len(list(work))):
            bar.advance(**fields)
    return file.getvalue().splitlines()


def test_a_log_gets_a_line_per_tenth_however_much_there_is_to_do():
    assert len(lines(10)) == 10
    assert len(lines(100_000)) <= 12


def test_the_last_line_says_that_all_is_done():
    for steps in (1, 2, 3, 7, 11, 99, 1000):
        assert lines(steps)[-1] == f"training  100%  {steps}/{steps}"


def test_fields_are_next_to_the_count():
    assert lines(1, loss=0.123456, speed="9 examples/s") == ["training  100%  1/1  loss 0.1235  speed 9 examples/s"]


def test_unknown_amounts_are_reported_at_doubling_counts():
    file = io.StringIO()
    list(progress(iter(range(20)), "reading", file=file))
    assert file.getvalue().split() == ["reading", "1", "reading", "2", "reading", "4", "reading", "8", "reading", "16"]


def test_nothing_to_do_says_nothing():
    assert lines(0) == []


def test_quiet_says_nothing_and_passes_the_items_on():
    file = Terminal()
    assert list(progress("abc", "reading", quiet=True, file=file)) == ["a", "b", "c"]
    assert file.getvalue() == ""


def test_a_terminal_gets_a_bar_with_the_fields():
    file = Terminal()
    with progress(2, "training", file=file) as bar:
        bar.advance(loss=0.5)
        bar.advance(loss="[bold]")
    shown = file.getvalue()
    assert "training" in shown
    assert "2/2" in shown
    assert "loss [bold]" in shown


def test_a_bar_ends_when_the_work_fails():
    file = Terminal()
    with pytest.raises(RuntimeError), progress(2, "training", file=file):
        raise RuntimeError
    assert file.getvalue().endswith("\x1b[?25h")  # the cursor is back


def test_without_rich_a_terminal_gets_lines(monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "rich", None)
    file = Terminal()
    list(progress(1, "training", file=file))
    assert file.getvalue() == "training  100%  1/1\n"


def test_a_negative_amount_is_refused():
    with pytest.raises(ValueError, match="at least 0, got -1"):
        progress(-1, "training")


def test_a_notebook_gets_a_bar_below_the_cell(monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=shown.append)
    display = types.SimpleNamespace(HTML=str, display=lambda html, display_id: shown.append(html) or handle)
    shell = types.SimpleNamespace(kernel=1)
    notebook = types.SimpleNamespace(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with progress(200, "<training>") as bar:
        for _ in range(200):
            bar.advance(loss=0.5)
    assert shown[0].startswith("&lt;training&gt; <progress")
    assert 'value="200" max="200"' in shown[-1]
    assert "200/200  loss 0.5" in shown[-1]
    assert len(shown) < 200
    del shell.kernel  # IPython in a terminal
    with progress(1, "training") as bar:
        count = len(shown)
        bar.advance()
    assert len(shown) == count
