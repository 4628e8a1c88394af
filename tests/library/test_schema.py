"""Schemas of custom operators: parsed (errors name the column), printed, inferred, and bound to calls."""

import functools
import inspect
import math
from collections.abc import Sequence
from typing import Optional, Union

import pytest

import retrograd as rg
from retrograd.core.schema_parser import parse
from retrograd.library import custom_op, infer_schema
from retrograd.library.schema import CustomSchema

from ..case_groups import group_cases

Tensor = rg.Tensor
read = functools.partial(parse, kind=CustomSchema)

AS_THEY_ARE = [
    "f() -> Tensor",
    "f(Tensor x) -> Tensor",
    "f(Tensor x, Tensor? w) -> (Tensor, Tensor)",
    "f(Tensor[] xs) -> Tensor[]",
    "f(Tensor?[] xs, Tensor[]? ys=None) -> ()",
    "f(Tensor x, Tensor[] ys, Tensor? w, int n=2, *, float[] s, str mode, bool b) -> (Tensor, Tensor[])",
    "f(Tensor(a0!) x, Tensor(a1!)[] ys, Tensor(a2!)? z=None) -> ()",
    "f(Tensor x, *, Tensor(a1!) out) -> int",
    "f(int[] a=[1, 2], float[] b=[], bool[] c=[True], str[] d=['x'], number[] e=[1, 2.5]) -> Tensor",
    "f(int? a=None, float? b=None, int[]? c=None, str? d=None) -> Tensor",
    "f(float a=0.5, float b=-1.0, float c=1e-05, float d=inf, float e=-inf, number f=3) -> Tensor",
    """f(str a="it's", str b='tab\\t, end)', str c='') -> Tensor""",
    "f(dtype a=float32, dtype? b=None, any? c=None) -> Tensor",
    "f(Tensor x) -> (Tensor, (Tensor, Tensor[]), int)",
    "f(Tensor x) -> (Tensor,)",
    "f(Tensor x) -> (Tensor?, Tensor?[], Tensor[]?, float, str, bool)",
    "ns::f(Tensor x) -> Tensor",
    "f.overload(Tensor x) -> Tensor",
    "f(Tensor(a0!) x, int n) -> Tensor(a0!)",
    "f(Tensor x, *, Tensor(a1!) y, Tensor(a2!) z) -> (Tensor(a1!), Tensor(a2!))",
    "f(Tensor(a0!) x) -> (int, Tensor(a0!))",
    "f(Tensor(a0) x, int n) -> Tensor(a0)",
    "f(device? d=None, device e='cpu') -> Tensor",
]


@pytest.mark.parametrize("text", AS_THEY_ARE)
def test_a_schema_prints_as_it_was_written(text):
    assert str(read(text)) == text


@pytest.mark.parametrize("text", AS_THEY_ARE)
def test_printed_schemas_parse_to_equal_schemas(text):
    schema = read(text)
    assert read(str(schema)) == schema
    assert hash(read(str(schema))) == hash(schema)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("(Tensor x)->Tensor", "(Tensor x) -> Tensor"),
        ("(SymInt n, Scalar a, ScalarType t) -> Tensor", "(int n, number a, dtype t) -> Tensor"),
        ("(SymInt[] n, Device d, Layout l) -> Tensor", "(int[] n, device d, any l) -> Tensor"),
        ("(Tensor(a!) x) -> ()", "(Tensor(a0!) x) -> ()"),
        ("(Tensor(mem) x) -> Tensor", "(Tensor x) -> Tensor"),
        ("(Tensor x) -> (Tensor)", "(Tensor x) -> Tensor"),
        ("(Tensor x) -> Tensor y", "(Tensor x) -> Tensor"),
        ("(Tensor x) -> (Tensor y, Tensor[] rest)", "(Tensor x) -> (Tensor, Tensor[])"),
        ("(float a=2, float[] b=[1, 2.5]) -> Tensor", "(float a=2.0, float[] b=[1.0, 2.5]) -> Tensor"),
        ("(\n  Tensor x,\n  int n = 3\n) -> Tensor", "(Tensor x, int n=3) -> Tensor"),
        ("(float a=.5, float b=1., float c=1E3) -> Tensor", "(float a=0.5, float b=1.0, float c=1000.0) -> Tensor"),
        ("(int[] a=3) -> Tensor", "(int[] a=[3]) -> Tensor"),
    ],
)
def test_other_ways_to_write_the_same(text, printed):
    assert str(read(text)) == printed


def test_nan_is_a_default():
    assert math.isnan(read("(float a=nan) -> Tensor").parameters[0].default)


@group_cases
@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("Tensor x) -> Tensor", 8, r"expected '\(', got 'x'"),
        ("(Tensr x) -> Tensor", 2, "expected a type, one of Tensor, int, .*, got 'Tensr'"),
        ("(Tensor) -> Tensor", 8, "expected the name of an argument, got '[)]'"),
        ("(Tensor x, Tensor x) -> Tensor", 19, "expected another name: this one is taken, got 'x'"),
        ("(Tensor x Tensor y) -> Tensor", 11, "expected ',', got 'Tensor'"),
        ("(Tensor x,) -> Tensor", 11, "expected a type, .* got '[)]'"),
        ("(Tensor x, *, *, int n) -> Tensor", 15, r"expected a type, .* got '\*'"),
        ("(Tensor x", 10, "expected ',', got 'the end'"),
        ("(Tensor x) Tensor", 12, "expected '->', got 'Tensor'"),
        ("(Tensor x) ->", 14, "expected a type, .* got 'the end'"),
        ("(Tensor x) -> Tensor, Tensor", 21, "expected the end, got ','"),
        ("(Tensor x) -> (Tensor Tensor", 29, "expected ',', got 'the end'"),
        ("(Tensor x) -> (Tensor, Tensr)", 24, "expected a type, .* got 'Tensr'"),
        ("(int n=) -> Tensor", 8, "expected a default: a number, .* got '\\)'"),
        ("(int n=2.5) -> Tensor", 8, "expected a default that int can have, got '2.5'"),
        ("(int n='a') -> Tensor", 8, "expected a default that int can have"),
        ("(int n=None) -> Tensor", 8, "expected a default that int can have, got 'None'"),
        ("(bool b=1) -> Tensor", 9, "expected a default that bool can have"),
        ("(Tensor x=3) -> Tensor", 11, "expected a default that Tensor can have"),
        ("(float[] s=[1, 'a']) -> Tensor", 12, r"expected a default that float\[\] can have"),
        ("(int[] s=[1 2]) -> Tensor", 13, "expected ',', got '2'"),
        ("(dtype d=float33) -> Tensor", 10, "expected a default that dtype can have, got 'float33'"),
        ("(str s=mean) -> Tensor", 8, "expected a default: .* got 'mean'"),
        ("(int n=2, Tensor x) -> Tensor", 18, "expected a default: 'n' has one, and so must what follows, got 'x'"),
        ("(int[3] n) -> Tensor", 6, r"expected '\]', as a list may have any length, got '3'"),
        ("(device[] d) -> Tensor", 8, "expected no list: of device there is none"),
        ("(int?[] n) -> Tensor", 6, r"expected no list: of int\? there is none"),
        ("(int(a!) n) -> Tensor", 5, "expected no mark of memory"),
        ("(Tensor(!) x) -> Tensor", 9, r"expected a name, as in Tensor\(a!\)"),
        ("(Tensor(a! x) -> Tensor", 12, r"expected '\)', got 'x'"),
        ("(Tensor(a!) x) -> Tensor(b!)", 19, "expected no mark, or one that an argument has"),
        ("(Tensor(a!) x) -> Tensor(a)", 19, "expected no mark, or one that an argument has"),
        ("(Tensor(a!) x) -> (int, (Tensor(a!), int))", 26, "expected no mark in a nested tuple"),
        ("(Tensor x, int vmap_operands) -> Tensor", 16, "expected another name: this one is taken"),
    ],
)
def test_an_error_shows_the_column(text, column, message):
    with pytest.raises(ValueError, match=f"^schema, column {column}: {message}") as caught:
        read(text)
    shown, mark = str(caught.value).splitlines()[-2:]
    assert shown == f"  {text}"
    assert mark.index("^") == column + 1


# ---------------------------------------------------------------------------------------------------- inference


def plain(x: Tensor, n: int, a: float, flag: bool, mode: str, t: rg.dtype) -> Tensor: ...
def lists(xs: list[Tensor], n: list[int], a: Sequence[float], flags: list[bool], modes: list[str]) -> Tensor: ...
def optionals(x: Tensor | None, xs: list[Tensor | None], ys: list[Tensor] | None, n: int | None = None) -> Tensor: ...
def olden(x: Optional[Tensor], n: Optional[list[int]] = None) -> Tensor: ...  # noqa: UP045
def numbers(a: int | float, b: Union[int, float], c: int | float | None = None) -> Tensor: ...  # noqa: UP007
def defaults(x: Tensor, n: int = 2, a: float = 0.5, s: str = "it's", t: rg.dtype = rg.float32) -> Tensor: ...
def list_default(n: Sequence[int] = (1, 2)) -> Tensor: ...
def named(x: Tensor, *, n: int, y: Tensor) -> Tensor: ...
def nothing(x: Tensor) -> None: ...
def several(x: Tensor) -> tuple[Tensor, list[Tensor], int, tuple[float, str]]: ...
def one(x: Tensor) -> tuple[Tensor]: ...
def many(x: Tensor) -> list[Tensor]: ...
def quoted(x: "Tensor", n: "list[int]") -> "Tensor": ...


@pytest.mark.parametrize(
    ("function", "schema"),
    [
        (plain, "(Tensor x, SymInt n, float a, bool flag, str mode, ScalarType t) -> Tensor"),
        (lists, "(Tensor[] xs, SymInt[] n, float[] a, bool[] flags, str[] modes) -> Tensor"),
        (optionals, "(Tensor? x, Tensor?[] xs, Tensor[]? ys, SymInt? n=None) -> Tensor"),
        (olden, "(Tensor? x, SymInt[]? n=None) -> Tensor"),
        (numbers, "(Scalar a, Scalar b, Scalar? c=None) -> Tensor"),
        (defaults, """(Tensor x, SymInt n=2, float a=0.5, str s="it's", ScalarType t=float32) -> Tensor"""),
        (list_default, "(SymInt[] n=[1, 2]) -> Tensor"),
        (named, "(Tensor x, *, SymInt n, Tensor y) -> Tensor"),
        (nothing, "(Tensor x) -> ()"),
        (several, "(Tensor x) -> (Tensor, Tensor[], SymInt, (float, str))"),
        (one, "(Tensor x) -> (Tensor,)"),
        (many, "(Tensor x) -> Tensor[]"),
        (quoted, "(Tensor x, SymInt[] n) -> Tensor"),
    ],
)
def test_a_schema_is_inferred_from_annotations(function, schema):
    assert infer_schema(function, mutates_args=()) == schema


@pytest.mark.parametrize(
    ("mutates", "schema"),
    [
        (("y",), "(Tensor x, *, SymInt n, Tensor(a2!) y) -> Tensor"),
        (["y", "x"], "(Tensor(a0!) x, *, SymInt n, Tensor(a2!) y) -> Tensor"),
        ("unknown", "(Tensor(a0!) x, *, SymInt n, Tensor(a2!) y) -> Tensor"),
    ],
)
def test_mutated_arguments_are_marked(mutates, schema):
    assert infer_schema(named, mutates_args=mutates) == schema
    with pytest.raises(ValueError, match="mutates_args must either be a sequence of the names"):
        infer_schema(named, mutates_args="y")


def test_the_name_goes_in_front():
    assert infer_schema(nothing, mutates_args=(), op_name="touch") == "touch(Tensor x) -> ()"


def bare(x) -> Tensor: ...
def no_result(x: Tensor): ...
def strange(x: complex) -> Tensor: ...
def mapping(x: dict[str, Tensor]) -> Tensor: ...
def pair(x: tuple[Tensor, Tensor]) -> Tensor: ...
def rest(*xs: Tensor) -> Tensor: ...
def options(**kwargs: int) -> Tensor: ...
def two_kinds(x: Tensor | int) -> Tensor: ...
def strange_result(x: Tensor) -> dict: ...
def strange_default(x: Tensor, n: int = object()) -> Tensor: ...  # type: ignore[assignment]
def wrong_default(x: Tensor, n: int = 2.5) -> Tensor: ...  # type: ignore[assignment]
def endless(x: Tensor) -> tuple[Tensor, ...]: ...
def equal_pair(n: tuple[int, int]) -> Tensor: ...
def mixed_pair(n: tuple[int, float]) -> Tensor: ...
def list_of_none(n: list[int | None]) -> Tensor: ...


@pytest.mark.parametrize(
    ("function", "mutates", "message"),
    [
        (bare, (), "Parameter x must have a type annotation"),
        (no_result, (), "No return type annotation was provided. Please add one. It is -> None"),
        (strange, (), "Parameter x has unsupported type <class 'complex'>. Expected Tensor, int"),
        (mapping, (), "Parameter x has unsupported type dict"),
        (pair, (), "Parameter x has unsupported type tuple"),
        (two_kinds, (), "Parameter x has unsupported type"),
        (rest, (), r"\*xs: .*: the arguments of an operator are named one by one"),
        (options, (), r"\*\*kwargs: .*: the arguments of an operator are named one by one"),
        (strange_result, (), "Return has unsupported type <class 'dict'>"),
        (strange_default, (), "Parameter n has an unsupported default value type <class 'object'>"),
        (wrong_default, (), "column 18: expected a default that int can have, got '2.5'"),
        (list_of_none, (), r"Parameter n has unsupported type list\[int \| None\]"),
        (endless, (), r"Return has unsupported type tuple\[.*, \.\.\.\]"),
        (equal_pair, (), r"We do not support Tuple inputs in schema\. .* For example, list\[int\]"),
        (mixed_pair, (), r"please try to use List instead\. Expected"),
        (plain, ("z",), r"mutates_args has 'z', but the tensor arguments are \['x'\]"),
        (plain, ("n",), r"mutates_args has 'n', but the tensor arguments are \['x'\]"),
    ],
)
def test_signatures_that_can_not_be_inferred_are_refused(function, mutates, message):
    with pytest.raises(ValueError, match=message):
        infer_schema(function, mutates_args=mutates)


def test_an_annotation_that_the_module_does_not_know_is_refused():
    class Local: ...

    def function(x: "Local") -> Tensor: ...

    with pytest.raises(
        ValueError, match=r"Unsupported type annotation Local\. It is not a type\. .* define it at the top of"
    ):
        infer_schema(function, mutates_args=())


# ------------------------------------------------------------------------------------------------------- binding

SEEN = "(Tensor x, Tensor[] ys, Tensor? w=None, int n=2, *, float[] s=[1.0], str mode='a', dtype? t=None) -> Tensor"


@pytest.fixture(scope="module")
def recording_operator():
    """Return an operator that records the arguments of its kernel."""
    calls = []

    def kernel(x, ys, w=None, n=2, *, s=(1.0,), mode="a", t=None):
        calls.append((len(ys), w is None, n, s, mode, t))
        return x.clone()

    op = custom_op("test_schema::seen", kernel, mutates_args=(), schema=SEEN)

    def call(*args, **kwargs):
        op(*args, **kwargs)
        return calls.pop()

    return call


ONE = rg.ones(1)


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((ONE, []), {}, (0, True, 2, [1.0], "a", None)),
        ((ONE, [ONE, ONE]), {}, (2, True, 2, [1.0], "a", None)),
        ((ONE, (ONE,), ONE, 5), {}, (1, False, 5, [1.0], "a", None)),
        ((), {"ys": [ONE], "x": ONE, "n": 3}, (1, True, 3, [1.0], "a", None)),
        ((ONE, []), {"s": (2, 3), "mode": "b", "t": rg.float64}, (0, True, 2, [2.0, 3.0], "b", rg.float64)),
        ((ONE, [], None), {"s": []}, (0, True, 2, [], "a", None)),
        ((ONE, []), {"n": rg.tensor(4)}, (0, True, 4, [1.0], "a", None)),
    ],
)
def test_a_kernel_gets_all_arguments_with_their_defaults(recording_operator, args, kwargs, expected):
    assert recording_operator(*args, **kwargs) == expected


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing argument 'x'"),
        ((ONE,), {}, "missing argument 'ys'"),
        ((ONE, [], None, 2, [1.0]), {}, "takes 4 positional arguments, got 5"),
        ((ONE, []), {"x": ONE}, "got two values for 'x'"),
        ((ONE, []), {"dim": 0}, "unexpected keyword argument 'dim'"),
        ((), {"input": ONE, "ys": []}, "unexpected keyword argument 'input'"),
        ((2.0, []), {}, "x must be a Tensor, got float; its type is Tensor"),
        ((None, []), {}, "x must be a Tensor, got NoneType"),
        ((ONE, ONE), {}, "ys must be a list of tensors, got Tensor"),
        ((ONE, None), {}, "ys must be a list of tensors, got NoneType"),
        ((ONE, [ONE, 3]), {}, r"ys\[1\] must be a Tensor, got int; its type is Tensor\[\]"),
        ((ONE, [None]), {}, r"ys\[0\] must be a Tensor, got NoneType"),
        ((ONE, [], 3), {}, r"w must be a Tensor or None, got int; its type is Tensor\?"),
        ((ONE, [], None, 2.5), {}, "n must be int, got 2.5"),
        ((ONE, [], None, None), {}, "n must be int, got None"),
        ((ONE, []), {"s": 3.0}, r"s must be float\[\], got 3.0"),
        ((ONE, []), {"s": ["a"]}, r"s must be float\[\], got \['a'\]"),
        ((ONE, []), {"mode": 3}, "mode must be str, got 3"),
        ((ONE, []), {"t": "nothing"}, r"t must be dtype or None, got 'nothing'"),
    ],
)
def test_a_call_that_does_not_fit_says_the_argument(recording_operator, args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        recording_operator(*args, **kwargs)


def test_a_list_comes_as_one_argument():
    op = custom_op(
        "test_schema::last", lambda x, ys: x * 1, mutates_args=(), schema="(Tensor x, Tensor[] ys) -> Tensor"
    )
    for rest in ([ONE], [ONE, ONE]):
        with pytest.raises(
            TypeError, match=r"ys must be a list of tensors, got Tensor|takes 2 positional arguments, got 3"
        ):
            op(ONE, *rest)


@pytest.mark.parametrize(
    ("schema", "args", "found"),
    [
        ("(Tensor?[] xs) -> Tensor", ([None, ONE, None],), [True, False, True]),
        ("(Tensor[]? xs) -> Tensor", (None,), None),
        ("(Tensor[]? xs=None) -> Tensor", (), None),
        ("(Tensor[]? xs) -> Tensor", ([],), []),
        ("(Tensor[]? xs) -> Tensor", ([ONE],), [False]),
        ("(Tensor[] a, Tensor[] xs) -> Tensor", ([ONE], [ONE, ONE]), [False, False]),
        ("(Tensor[] xs, Tensor b) -> Tensor", ([ONE, ONE], ONE), [False, False]),
    ],
)
def test_lists_arrive_as_they_were_given(schema, args, found):
    recording_operator = []
    names = [p.name for p in read(schema).parameters]

    def kernel(*args):
        xs = dict(zip(names, args, strict=True))["xs"]
        recording_operator.append(xs if xs is None else [x is None for x in xs])
        return rg.ones(1)

    custom_op("test_schema::lists", kernel, mutates_args=(), schema=schema)(*args)
    assert recording_operator == [found]


def test_arguments_may_have_names_that_are_not_for_attributes():
    recording_operator = []

    def save(inputs, output):
        recording_operator.append(tuple(inputs))

    op = custom_op(
        "test_schema::words", lambda _x, y: y * 1, mutates_args=(), schema="(int _x, Tensor lambda) -> Tensor"
    )
    op.impl_save_for_backward(save)
    op.impl_backward()(lambda ctx, saved, g: {"lambda": g})
    x = rg.ones(2, requires_grad=True)
    op(3, x).sum().backward()
    assert recording_operator[0][0] == 3
    assert x.grad.tolist() == [1, 1]


def test_lengths_is_a_name_like_others():
    op = custom_op(
        "test_schema::lengths",
        lambda xs, lengths: xs[0][: lengths[0]].clone(),
        mutates_args=(),
        schema="(Tensor?[] xs, int[] lengths) -> Tensor",
    )
    assert op([rg.ones(3), None], [2]).tolist() == [1, 1]


def test_help_shows_the_signature():
    op = custom_op("test_schema::shown", lambda x, n: x, mutates_args=(), schema="(Tensor x, int n=3) -> Tensor")
    assert str(inspect.signature(op)) == "(x: 'Tensor', n: 'int' = 3)"
    assert op.__doc__ == "test_schema::shown(Tensor x, int n=3) -> Tensor"


# -------------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize(
    ("returns", "result", "message"),
    [
        ("Tensor", 3, "the result must be Tensor, as the schema says, got int"),
        ("Tensor", None, "the result must be Tensor, as the schema says, got NoneType"),
        ("Tensor", (ONE,), "the result must be Tensor, as the schema says, got tuple"),
        ("(Tensor, Tensor)", ONE, "the result must be a tuple of 2, as the schema says, got Tensor"),
        ("(Tensor, Tensor)", (ONE,), "the result must be a tuple of 2, as the schema says, got 1 values"),
        ("(Tensor, Tensor)", (ONE, 1), r"the result\[1\] must be Tensor"),
        ("Tensor[]", ONE, "the result must be a list, as the schema says, got Tensor"),
        ("Tensor[]", [ONE, None], r"the result\[1\] must be Tensor"),
        ("(Tensor, int)", (ONE, rg.ones(1)), r"the result\[1\] must be int, as the schema says, got Tensor"),
        ("(Tensor, int)", (ONE, "a"), r"the result\[1\] must be int, as the schema says, got str"),
        ("(Tensor, float[])", (ONE, [1.0, "a"]), r"the result\[1\]\[1\] must be float"),
        ("()", ONE, "the result must be None, as the schema says, got Tensor"),
        ("(Tensor, (Tensor, int))", (ONE, (rg.ones(1), rg.ones(2))), r"the result\[1\]\[1\] must be int"),
    ],
)
def test_a_result_that_is_not_as_the_schema_says_is_refused(returns, result, message):
    op = custom_op("test_schema::returning", lambda x: result, mutates_args=(), schema=f"(Tensor x) -> {returns}")
    with pytest.raises(RuntimeError, match=f"test_schema::returning: {message}"):
        op(rg.zeros(1))


@pytest.mark.parametrize(
    ("returns", "result"),
    [
        ("()", None),
        ("int", 3),
        ("(int, float, bool, str, float)", (3, 2.5, True, "a", 1)),
        ("int[]", [1, 2]),
        ("dtype", rg.float32),
        ("Tensor?", None),
        ("(Tensor?, Tensor[]?)", (None, None)),
        ("Tensor[]", []),
    ],
)
def test_results_without_tensors_come_back_as_they_are(returns, result):
    op = custom_op("test_schema::plain", lambda x: result, mutates_args=(), schema=f"(Tensor x) -> {returns}")
    assert op(ONE) == result
    assert op(rg.ones(1, requires_grad=True)) == result


def test_results_keep_their_structure():
    op = custom_op(
        "test_schema::nested",
        lambda x: (x + 1, [x + 2, x + 3], 7, (x + 4, None)),
        mutates_args=(),
        schema="(Tensor x) -> (Tensor, Tensor[], int, (Tensor, Tensor?))",
    )
    a, [b, c], n, (d, e) = op(rg.zeros(()))
    assert ([a.item(), b.item(), c.item(), d.item()], n, e) == ([1, 2, 3, 4], 7, None)
