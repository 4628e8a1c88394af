"""Schemas that are inferred from annotations and defaults; fallbacks; overloads."""

import typing

import pytest
import torch

import retrograd as rg

from .programs import assert_same, data

SAME = {"SymInt": "int", "ScalarType": "dtype", "Scalar": "number", "Device": "device", '"': "'"}
ANNOTATIONS = (
    "T", "Optional[T]", "T | None", "None | T", "List[T]", "list[T]", "Sequence[T]", "List[Optional[T]]",
    "int", "float", "bool", "str", "Optional[int]", "Optional[str]", "bool | None", "List[int]", "Sequence[int]",
    "Sequence[float]", "Sequence[bool]", "Optional[Sequence[int]]", "Union[int, float, bool]", "m.types.Number",
    "int | float | bool", "Optional[Union[int, float, bool]]", "Sequence[Union[int, float, bool]]", "m.dtype",
    "Optional[m.dtype]", "m.device", "Optional[m.device]", "'int'", "'T'", "'Optional[int]'",
)  # fmt: skip
REFUSED = (
    "List[List[int]]", "Any", "Dict[str, int]", "Set[int]", "Callable", "complex", "object", "None",
    "Union[T, int]", "Union[int, str]", "bytes", "type", "Literal['a', 'b']", "m.nn.Parameter", "m.layout",
    "m.memory_format", "Tuple[int, float]", "Iterable[int]", "list", "Optional[List[Optional[int]]]",
    "Tuple[T, ...]", "Tuple[int, ...]",
)  # fmt: skip
# Annotations that PyTorch refuses.
FURTHER = {
    "Optional[List[T]]": "Tensor[]?", "Sequence[str]": "str[]",
    "Union[int, float]": "number",
}  # fmt: skip
RESULTS = ("T", "List[T]", "Tuple[T, T]", "Tuple[T, int, List[T]]", "Tuple[()]", "int", "float", "bool",
           "Union[int, float, bool]", "None", "Tuple[int, float]")  # fmt: skip
DEFAULTS = (
    ("int", "1"), ("int", "-3"), ("float", "1.5"), ("float", "float('inf')"), ("float", "1e-5"), ("bool", "True"),
    ("str", "'s'"), ("Optional[int]", "None"), ("Optional[int]", "1"), ("Optional[float]", "1.5"),
    ("m.dtype", "m.float32"), ("m.device", "m.device('cpu')"), ("Union[int, float, bool]", "2"),
    ("Optional[T]", "None"), ("Optional[Sequence[int]]", "None"),
)  # fmt: skip
WRONG_DEFAULTS = (("int", "1j"), ("int", "[1, 2]"), ("T", "m.ones(2)"), ("int", "m.ones(2)"), ("str", "(1, 2)"))
MUTATED = ("()", "{'x'}", "{'y'}", "['x', 'y']", "'unknown'", "{'n'}", "{'z'}", "'x'")


def inferred(m, source, mutates="()"):
    """Return the schema of a function given as text, in the words of this library, or the class of the error."""
    scope = {**vars(typing), "m": m, "T": m.Tensor}
    exec(source, scope)
    try:
        text = m.library.infer_schema(scope["f"], mutates_args=eval(mutates))
    except ValueError:
        return ValueError
    for theirs, ours in SAME.items():
        text = text.replace(theirs, ours)
    return text


def agree(source, mutates="()"):
    mine, peer = (inferred(m, source, mutates) for m in (rg, torch))
    assert mine == peer
    return mine


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_annotations_of_arguments_have_pytorchs_types(annotation):
    assert isinstance(agree(f"def f(x: {annotation}) -> T: ..."), str)


@pytest.mark.parametrize("annotation", REFUSED)
def test_annotations_that_pytorch_refuses_are_refused(annotation):
    assert agree(f"def f(x: {annotation}) -> T: ...") is ValueError


@pytest.mark.parametrize("annotation", FURTHER)
def test_further_annotations_are_those_that_pytorch_refuses(annotation):
    source = f"def f(x: {annotation}) -> T: ..."
    assert inferred(torch, source) is ValueError
    assert inferred(rg, source) == f"({FURTHER[annotation]} x) -> Tensor"


@pytest.mark.parametrize("annotation", RESULTS)
def test_annotations_of_results_have_pytorchs_types(annotation):
    assert isinstance(agree(f"def f(x: T) -> {annotation}: ..."), str)


@pytest.mark.parametrize(("annotation", "default"), DEFAULTS)
def test_defaults_are_written_as_pytorch_writes_them(annotation, default):
    assert isinstance(agree(f"def f(x: T, y: {annotation} = {default}) -> T: ..."), str)


@pytest.mark.parametrize(("annotation", "default"), WRONG_DEFAULTS)
def test_defaults_that_pytorch_refuses_are_refused(annotation, default):
    assert agree(f"def f(x: T, y: {annotation} = {default}) -> T: ...") is ValueError


@pytest.mark.parametrize("annotation", ["int", "float", "bool", "str", "m.dtype", "m.device"])
def test_none_is_no_default_of_an_argument_that_is_not_optional(annotation):
    assert inferred(rg, f"def f(x: T, y: {annotation} = None) -> T: ...") is ValueError


@pytest.mark.parametrize("mutates", MUTATED)
def test_written_arguments_are_marked_as_pytorch_marks_them(mutates):
    agree("def f(x: T, y: List[T], *, n: int = 2) -> None: ...", mutates)


def replaced(m):
    """Run operators with and without a kernel while a fallback is registered, and after it."""
    lib = m.library.Library("parity_fallback", "FRAGMENT")
    lib.define("f(Tensor x, float s=2.0, *, int k=1) -> Tensor")
    lib.define("g(Tensor x) -> Tensor")
    lib.impl("g", lambda x: x + 1, "CPU")
    calls = []

    def fallback(op, *args, **kwargs):
        calls.append((op.name() if callable(op.name) else op.name, len(args), kwargs))
        return args[0] * 3

    everywhere = m.library.Library("_", "IMPL")
    everywhere.fallback(fallback, "CPU")
    try:
        found = [m.ops.parity_fallback.f(m.ones(2), 5.0, k=3), m.ops.parity_fallback.g(m.ones(2))]
    finally:
        everywhere._destroy()
    with pytest.raises(NotImplementedError):
        m.ops.parity_fallback.f(m.ones(2))
    lib._destroy()
    return data(found), calls


def test_a_fallback_runs_operators_without_kernel():
    assert_same(replaced(rg), replaced(torch))


def test_an_overload_knows_its_name_and_the_other_overloads():
    for m in (rg, torch):
        lib = m.library.Library("parity_overloads", "FRAGMENT")
        lib.define("f(Tensor x) -> Tensor")
        lib.define("f.number(Tensor x, float y) -> Tensor")
        packet = m.ops.parity_overloads.f
        assert packet.overloads() == ["default", "number"]
        assert (packet.number._overloadname, packet.default._overloadname) == ("number", "default")
        assert packet.number.namespace == "parity_overloads"
        assert str(packet.number._schema) == "parity_overloads::f.number(Tensor x, float y) -> Tensor"
        assert packet.number.overloadpacket.overloads() == ["default", "number"]
        lib._destroy()
