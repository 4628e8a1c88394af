"""Run the code of the guides: blocks of Python, and dialogues with their answers."""

import contextlib
import doctest
import io
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
WIDEST = 107  # characters in a line of code on the site, in a window of 1400 pixels


class WrappedAnswers(doctest.OutputChecker):
    """A checker of answers that pages may break at spaces where a line is wider than the page."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Return whether an answer is the one that the page shows."""
        if any(len(line) > WIDEST for line in got.splitlines()):
            optionflags |= doctest.NORMALIZE_WHITESPACE
        return super().check_output(want, got, optionflags)


def blocks(text: str, language: str) -> list[str]:
    """Return the bodies of the fenced blocks in a page whose language is the one given."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [body for named, body in fenced if named == language]


def run_dialogue(page: str) -> dict[str, Any]:
    """Return the names that the dialogue of a page defines; all its examples are one session.

    Raises AssertionError if an answer differs from the page's.
    """
    text = "\n".join(body for body in blocks((DOCS / f"{page}.md").read_text(), "") if ">>> " in body)
    test = doctest.DocTestParser().get_doctest(text, {}, f"{page}.md", None, 0)
    report = io.StringIO()
    runner = doctest.DocTestRunner(WrappedAnswers(), optionflags=doctest.ELLIPSIS)
    runner.run(test, out=report.write, clear_globs=False)
    assert not report.getvalue(), report.getvalue()
    return test.globs


def run_block(page: str, has: str, **given: Any) -> dict[str, Any]:
    """Return the names that the first block of Python with the text `has` defines."""
    body = next(body for body in blocks((DOCS / f"{page}.md").read_text(), "python") if has in body)
    names = dict(given)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(body, f"{page}.md", "exec"), names)
    return names
