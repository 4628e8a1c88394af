"""The coverage of packages is computed from the lines of their files."""

from pathlib import Path
from runpy import run_path

TOOL = run_path(str(Path(__file__).parents[1] / "tools/package_coverage.py"))


def of(statements, covered):
    return {"summary": {"num_statements": statements, "covered_lines": covered}}


def test_files_of_a_package_count_by_their_statements_and_the_lowest_is_first():
    files = {
        "src/retrograd/__init__.py": of(10, 10),
        "src/retrograd/core/op.py": of(90, 90),
        "src/retrograd/core/state.py": of(10, 0),
        "src/retrograd/fx/passes/lint.py": of(4, 1),
        "src/retrograd/nn/__init__.py": of(0, 0),
    }
    assert list(TOOL["percentages"]({"files": files}).items()) == [("fx", 25.0), ("core", 90.0), ("retrograd", 100.0)]
