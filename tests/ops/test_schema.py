"""Schemas: parsed, printed, bound to calls, and refused."""

import numpy as np
import pytest

import retrograd.ops  # noqa: F401 (registers the operators)
from retrograd.core import parse, registry

from ..case_groups import group_cases

CLIP = parse("clip(Tensor x, number? min=None, number? max=None, *, bool strict=False) -> Tensor")
CAT = parse("cat(Tensor[] tensors, int dim=0) -> Tensor")
RESHAPE = parse("reshape(Tensor x, int... shape) -> Tensor")
SUM = parse("sum(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor")


@group_cases
@pytest.mark.parametrize("name", sorted(registry))
def test_every_schema_prints_as_what_it_is_read_from(name):
    text = str(registry[name].schema)
    assert str(parse(text)) == text
    assert parse(text).parameters == registry[name].schema.parameters


def test_inputs_are_tensors_and_everything_else_is_a_parameter():
    assert [p.name for p in CLIP.inputs] == ["x"]
    assert [p.name for p in CLIP.params] == ["min", "max", "strict"]
    assert CLIP.defaults == {"min": None, "max": None, "strict": False}


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("bool keepdim=False", False),
        ("float eps=1e-5", 1e-5),
        ("int dim=-1", -1),
        ("str reduction='mean'", "mean"),
        ("int[] dims=[0, 1]", (0, 1)),
        ("int[] dims=(0, 1)", (0, 1)),
        ("int[]? dim=None", None),
    ],
)
def test_defaults_are_read_with_their_types(text, default):
    (value,) = parse(f"f(Tensor x, {text}) -> Tensor").defaults.values()
    assert (value, type(value)) == (default, type(default))


@pytest.mark.parametrize(
    ("schema", "args", "kwargs", "inputs", "params"),
    [
        (CLIP, (1.0, 0), {}, (1.0,), {"min": 0, "max": None, "strict": False}),
        (CLIP, (1.0,), {"max": 2.5, "strict": True}, (1.0,), {"min": None, "max": 2.5, "strict": True}),
        (CLIP, (1.0, np.array(0.5)), {}, (1.0,), {"min": 0.5, "max": None, "strict": False}),
        (CAT, ([1, 2, 3], 1), {}, (1, 2, 3), {"dim": 1}),
        (CAT, ([],), {"axis": -1}, (), {"dim": -1}),
        (RESHAPE, (1.0, 2, 3), {}, (1.0,), {"shape": (2, 3)}),
        (RESHAPE, (1.0, (2, 3)), {}, (1.0,), {"shape": (2, 3)}),
        (RESHAPE, (1.0,), {"shape": [np.int64(2), 3]}, (1.0,), {"shape": (2, 3)}),
        (SUM, (1.0, 0), {}, (1.0,), {"dim": (0,), "keepdim": False}),
        (SUM, (), {"input": 1.0, "axis": (0, 1), "keepdims": True}, (1.0,), {"dim": (0, 1), "keepdim": True}),
    ],
)
def test_calls_are_bound_to_flat_inputs_and_complete_parameters(schema, args, kwargs, inputs, params):
    assert schema.bind(args, kwargs) == (inputs, params)


@pytest.mark.parametrize(
    ("schema", "args", "kwargs", "message"),
    [
        (CLIP, (), {}, "missing argument 'x'"),
        (CLIP, (1, 2, 3, True), {}, "takes 3 positional arguments, got 4"),
        (CLIP, (1,), {"low": 0}, "unexpected keyword argument 'low'"),
        (CLIP, (1, 2), {"min": 0}, "two values for 'min'"),
        (CLIP, (1,), {"strict": 1}, "strict must be bool, got 1"),
        (CLIP, (1, "a"), {}, r"min must be number or None, got 'a' \(str\)"),
        (CAT, (1.0,), {}, "tensors must be a list of tensors, got float"),
        (RESHAPE, (1.0, 2.5), {}, r"shape must be int\.\.\., got 2.5"),
        (RESHAPE, (1.0,), {}, "missing argument 'shape'"),
        (SUM, (1.0,), {"other": 2}, "unexpected keyword argument 'other'"),
    ],
)
def test_calls_that_do_not_fit_name_what_does_not(schema, args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        schema.bind(args, kwargs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sin Tensor x", r"column 5: expected '\(', got 'Tensor'"),
        ("sin(Tensr x) -> Tensor", "column 5: expected a type, .* got 'Tensr'"),
        ("sin(Tensor) -> Tensor", r"column 11: expected the name of an argument, got '\)'"),
        ("f(Tensor[] a, Tensor b) -> Tensor", "only the last tensor argument may be a list"),
        ("f(Tensor a, int n=2, int m) -> Tensor", "column 26: expected a default: 'n' has one, and so must"),
    ],
)
def test_schemas_that_cannot_be_read_show_the_part(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_flat_inputs_are_grouped_by_name():
    assert CAT.group((1, 2, 3)) == {"tensors": (1, 2, 3)}
    assert CLIP.group((1,)) == {"x": 1}
    mixed = parse("f(Tensor x, Tensor? w, Tensor[] rest) -> Tensor")
    assert mixed.group((1, None, 2, 3)) == {"x": 1, "w": None, "rest": (2, 3)}
