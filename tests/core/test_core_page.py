"""The page docs/how_it_works.md lists the files of the core, in an order in which they can be read."""

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once("sources are read, nothing of them runs")

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src/retrograd/core"
PAGE = (ROOT / "docs/how_it_works.md").read_text()
LISTED = re.findall(r"^\| `(\w+)\.py` \|", PAGE, re.M)


def imported(module):
    """Return the modules of the core that a module of the core imports."""
    tree = ast.parse((CORE / f"{module}.py").read_text())
    sources = [(node.module or "", node.names) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [name.name for source, names in sources if source == "retrograd.core" for name in names]
    return {*names, *(source.rpartition(".")[2] for source, _ in sources if source.startswith("retrograd.core."))}


def test_the_page_lists_every_file_of_the_core():
    assert sorted(LISTED) == sorted(path.stem for path in CORE.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("module", LISTED)
def test_a_file_imports_only_files_above_it(module):
    assert imported(module) <= set(LISTED[: LISTED.index(module)])
