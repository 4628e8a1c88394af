"""Functions that are operators under other names are rows of one table, from which all faces are generated."""

import ast
import inspect
from pathlib import Path

import pytest

import retrograd as rg
from retrograd.interop import array_api as xp
from retrograd.interop.numpy_protocol import functions
from retrograd.interop.signatures import Operands, function_with_signature, parse

ROOT = Path(rg.__file__).parent
FACES = ("interop/numpy_protocol", "interop/array_api", "numpy", "scipy", "hips")
CONVERSIONS = {"tensor", "floating", "promoted", "agreeing"}
OPERATORS = {"O", "_op", "operator_named", "registry"}


def is_argument(node):
    """Whether a node passes an argument or a constant on, perhaps converted to a tensor."""
    if isinstance(node, ast.Starred):
        return is_argument(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CONVERSIONS:
        return all(map(is_argument, node.args))
    return isinstance(node, (ast.Name, ast.Constant))


def calls_operator(node):
    """Whether a node is a call of an operator such as `O.linalg.inv` or `_op("linalg.inv")`."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    while isinstance(function, (ast.Attribute, ast.Call, ast.Subscript)):
        function = function.func if isinstance(function, ast.Call) else function.value
    return isinstance(function, ast.Name) and function.id in OPERATORS


def is_renamed_operator(function):
    """Whether a function only calls an operator with its own arguments."""
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], ast.Return) or not calls_operator(body[0].value):
        return False
    call = body[0].value
    return all(map(is_argument, [*call.args, *(k.value for k in call.keywords)]))


def written_by_hand(source):
    """Return the names of the public functions in a module that only rename an operator."""
    tree = ast.parse(source)
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and is_renamed_operator(n)]
    return [n.name for n in found if n.decorator_list or not n.name.startswith("_")]


@pytest.mark.parametrize("face", FACES)
def test_no_face_writes_out_what_the_table_can_say(face):
    found = {str(path): written_by_hand(path.read_text()) for path in (ROOT / face).rglob("*.py")}
    # Methods of tensors, not functions of a namespace.
    found.pop(str(ROOT / "interop/numpy_protocol/array_methods.py"), None)
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "call",
    ["O.linalg.inv(floating(a))", '_op("outer")(*promoted(a, b))', "O.trunc(a)", 'registry["clone"](a)', "O.sum(a, 0)"],
)
def test_such_a_function_would_be_found(call):
    assert written_by_hand(f'def f(a, b):\n    """Doc."""\n    return {call}\n') == ["f"]


def test_generated_functions_look_like_written_ones():
    cholesky = xp.linalg.cholesky
    assert (cholesky.__name__, cholesky.__module__) == ("cholesky", "retrograd.interop.array_api.linalg")
    assert str(inspect.signature(cholesky)) == "(x, /, *, upper=False)"
    assert cholesky.__doc__.startswith("Cholesky factor")
    assert "along `axis`" in functions()["unstack"].__doc__
    assert xp.max.__doc__.startswith("The maximum over `axis`")
    with pytest.raises(TypeError, match=r"cholesky\(\)"):
        cholesky(rg.eye(2), lower=True)


PLAIN = Operands(None, None, lambda *operands: operands)


def test_an_argument_that_the_operator_lacks_is_refused():
    with pytest.raises(TypeError, match=r"narrow: the operator softmax.* has no parameter for 'width'"):
        function_with_signature("narrow(x, /, *, axis, width=1)", rg.softmax, PLAIN, __name__)


def test_a_part_that_is_no_argument_is_refused():
    with pytest.raises(ValueError, match="expected an argument of a signature, got 'x y'"):
        parse("narrow(x y)")
