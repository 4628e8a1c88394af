"""docs/how_it_works.md names what exists and orders the files of the core; decision 28 counts their lines."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

from retrograd.core.build_config import HOT

from ..case_groups import group_cases

pytestmark = pytest.mark.once("sources are read, nothing of them runs")

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src/retrograd/core"
PAGE = (ROOT / "docs/how_it_works.md").read_text()
SOURCES = ROOT / "src/retrograd"
SIZES = (ROOT / "docs/decisions/0028-the-size-of-the-core.md").read_text()
SIZE_ROWS = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (\d+) \|", SIZES, re.M)  # files, lines
LISTED = re.findall(r"^\| `(\w+)\.py` \|", PAGE, re.M)
ROWS = dict(re.findall(r"^\| `(\w+)\.py` \| (.*) \|$", PAGE, re.M))
PROSE = re.sub(r"^```.*?^```", "", PAGE, flags=re.M | re.S)
NAMED = sorted(set(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", PROSE)))
CLASSES = [name for name in NAMED if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name)]
PATHS = [name for name in NAMED if re.fullmatch(r"[\w/]*/[\w.]*|\w+\.py", name)]
FUNCTIONS = [name for name in NAMED if re.fullmatch(r"[a-z_]\w{2,}(\(\))?", name)]


def imported(module):
    """Return the modules of the core that a module of the core imports."""
    tree = ast.parse((CORE / f"{module}.py").read_text())
    sources = [(node.module or "", node.names) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [name.name for source, names in sources if source == "retrograd.core" for name in names]
    return {*names, *(source.rpartition(".")[2] for source, _ in sources if source.startswith("retrograd.core."))}


def defined(tree):
    """Return the names that a source defines: its classes, functions and variables, those in classes included."""
    kinds = ast.ClassDef, ast.FunctionDef
    names = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    return names | {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


@cache
def all_defined():
    """Return the names that the sources define, and those of modules and packages."""
    paths = list(SOURCES.rglob("*.py"))
    parts = {part for path in paths for part in path.relative_to(SOURCES).with_suffix("").parts}
    # Parsing all sources takes 5 s.
    definition = re.compile(r"^\s*(?:async )?(?:(?:class|def) (\w+)|(\w+)(?:: [^=\n]+)? = )", re.M)
    return parts.union(*[filter(None, found) for path in paths for found in definition.findall(path.read_text())])


@group_cases
@pytest.mark.parametrize("name", [*CLASSES, *FUNCTIONS])
def test_a_class_or_function_that_the_page_names_exists(name):
    assert name.removesuffix("()") in all_defined()


@group_cases
@pytest.mark.parametrize("name", PATHS)
def test_a_file_that_the_page_names_exists(name):
    assert (SOURCES / name).exists() or (CORE / name).exists()


@group_cases
@pytest.mark.parametrize("module", LISTED)
def test_a_file_defines_the_classes_that_the_page_lists_for_it(module):
    classes = set(re.findall(r"`([A-Z]\w+)`", ROWS[module]))
    inherited = {"Tensor"} if module == "overrides" else set()  # "subclasses of `Tensor`"
    assert classes - inherited <= defined(ast.parse((CORE / f"{module}.py").read_text()))


def test_the_page_says_how_many_modules_are_compiled():
    words = ["Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve", "Thirteen", "Fourteen", "Fifteen"]
    assert f"{words[len(HOT) - 7]} modules of `core/`" in PAGE


def test_the_page_lists_every_file_of_the_core():
    assert sorted(LISTED) == sorted(path.stem for path in CORE.glob("*.py") if path.stem != "__init__")


@group_cases
@pytest.mark.parametrize("module", LISTED)
def test_a_file_imports_only_files_above_it(module):
    assert imported(module) <= set(LISTED[: LISTED.index(module)])


def code_lines(text):
    """Return the number of lines that have a token other than a comment and belong to no docstring."""
    blank = tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in blank]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    documented = ast.Module, ast.ClassDef, ast.FunctionDef
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            lines -= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    return len(lines)


def lines_of(module):
    return code_lines((CORE / f"{module}.py").read_text())


def test_code_lines_are_counted_without_docstrings_comments_and_blank_lines():
    text = (
        '"""Title.\n\nMore.\n"""\n\n# why\nx = """two\nlines"""\n\ndef f():\n    """Return 1."""\n    return 1  # one\n'
    )
    assert code_lines(text) == 4


@pytest.mark.parametrize(("files", "stated"), SIZE_ROWS)
def test_decision_28_states_the_lines_of_files_within_20(files, stated):
    counted = sum(lines_of(module) for module in re.findall(r"\w+", files))
    assert abs(counted - int(stated)) <= 20, f"write {counted}"


def test_decision_28_states_each_file_once_and_the_sum_in_its_title():
    listed = [module for files, _ in SIZE_ROWS for module in re.findall(r"\w+", files)]
    assert sorted(listed) == sorted(path.stem for path in CORE.glob("*.py"))
    title = int(re.search(r"# 28\. The core has some ([\d,]+) lines", SIZES)[1].replace(",", ""))
    counted = sum(map(lines_of, listed))
    assert abs(counted - title) <= 40, f"write {round(counted, -1):,}"
