"""The bugs of `make mutations` can be seeded wherever their functions are, and change what they say."""

import ast

import pytest
from tests.case_groups import group_cases
from tests.mutations import (
    MUTATIONS,
    ROOT,
    Argument,
    Call,
    Comparison,
    Condition,
    Expression,
    Mutation,
    Result,
    Statement,
    apply_to,
)  # fmt: skip


@group_cases
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.bug)
def test_every_bug_changes_one_expression_of_its_function(mutation):
    before = (ROOT / "src/retrograd" / mutation.path).read_text()
    assert apply_to(before, mutation) != ast.unparse(ast.parse(before))


SOURCE = """
class A:
    def f(self, x, y):
        if x.size > y:  # a comment
            self.note(
                x,
            )
        return g(x, by=y)
h = f(vjp=lambda g: -g)
"""


@pytest.mark.parametrize(
    ("where", "change", "line"),
    [
        ("A.f", Result("x"), "return x"),
        ("A.f", Call("g"), "return x"),
        ("A.f", Call("g", "y"), "return y"),
        ("A.f", Argument("g", "by", "0"), "return g(x, by=0)"),
        ("f", Argument("g", 0, "y"), "return g(y, by=y)"),
        ("A.f", Condition("size"), "if False:"),
        ("A.f", Statement("self.note"), "    pass"),
        ("A.f", Comparison("size"), "if x.size < y:"),
        ("A.f", Expression("g(x,by = y)", "y"), "return y"),
        ("h.vjp", Result("g"), "h = f(vjp=lambda g: g)"),
    ],
)
def test_changes_find_their_target_by_names(where, change, line):
    assert line in apply_to(SOURCE, Mutation("", where, "", change))


@pytest.mark.parametrize(("where", "change"), [("A.f", Call("k")), ("A.g", Result("x")), ("A.f", Expression("x", "y"))])
def test_a_target_that_is_missing_or_not_unique_is_an_error(where, change):
    with pytest.raises(AssertionError, match=where):
        apply_to(SOURCE, Mutation("", where, "", change))
