"""A group of cases runs as one test, and its failures are reported by case."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.case_groups import group_cases

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest
from tests.case_groups import group_cases


@group_cases
@pytest.mark.parametrize("b", [0, 1], ids=["none", "one"])
@pytest.mark.parametrize(("a", "c"), [(2, "x"), (3, "y")])
def test_of_products(a, b, c, tmp_path):
    assert tmp_path.exists()
    assert (a, b) != (3, 1)
"""


def run(tmp_path, **variables):
    """Return the output of pytest for these tests."""
    file = tmp_path / "test_of_groups.py"
    file.write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", str(file)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), **variables}
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout


def test_the_report_names_the_case_that_fails(tmp_path):
    printed = run(tmp_path)
    assert "1 failed in" in printed
    assert "test_of_products: 1 of 4 cases fail: a=3, c='y', one" in printed
    assert "case a=3, c='y', one" in printed


def test_a_variable_makes_each_case_a_test(tmp_path):
    printed = run(tmp_path, RETROGRAD_TEST_CASES="separate")
    assert "1 failed, 3 passed" in printed
    assert "test_of_products[3-y-one]" in printed


def test_every_case_runs_whichever_fail():
    seen = []

    @group_cases
    @pytest.mark.parametrize("case", range(4))
    def check(case):
        seen.append(case)
        assert case % 2

    with pytest.raises(ExceptionGroup, match="2 of 4 cases fail: case=0; case=2") as caught:
        check()
    assert seen == [0, 1, 2, 3]
    assert [error.__notes__ for error in caught.value.exceptions] == [["case case=0"], ["case case=2"]]


def test_every_case_draws_the_same_random_numbers():
    drawn = []

    @group_cases
    @pytest.mark.parametrize("case", range(2))
    def check(case):
        drawn.append(random.random())

    check()
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("outcome", [pytest.skip, pytest.fail])
def test_a_case_that_is_skipped_or_fails_by_pytest_fails(outcome):
    @group_cases
    @pytest.mark.parametrize("case", [1])
    def check(case):
        outcome("why")

    with pytest.raises(BaseExceptionGroup, match="1 of 1 cases fail"):
        check()


def test_cases_are_those_of_the_time_when_the_test_is_defined():
    cases, seen = {1: "a"}, []

    @group_cases
    @pytest.mark.parametrize("case", cases.keys())
    def check(case):
        seen.append(case)

    cases[2] = "b"
    check()
    assert seen == [1]


def test_a_group_without_cases_is_refused():
    @group_cases
    @pytest.mark.parametrize("case", [])
    def check(case): ...

    with pytest.raises(AssertionError, match="has no cases"):
        check()
