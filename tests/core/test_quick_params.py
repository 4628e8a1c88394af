"""Calls whose arguments need no conversion are bound without their schema, and as their schema binds them."""

import copy

import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.core.schema import REQUIRED
from retrograd.testing import samples_of

from ..case_groups import group_cases

QUICK = sorted(name for name, op in registry.items() if op.leading >= 0 and hasattr(op.definition, "samples"))


def bound_quickly(op):
    """Return the number of samples that the operator binds without its schema, after comparing them with the schema."""
    count = 0
    for inputs, params in samples_of(op):
        args = (inputs,) if op.variadic else inputs
        quick = op.quick_params(args, params)
        if quick is not None:
            count += 1
            flat, bound = op.schema.bind(args, params)
            assert len(flat) == len(inputs)
            assert all(a is b for a, b in zip(flat, inputs, strict=True))
            assert quick == bound
    return count


@group_cases
@pytest.mark.parametrize("name", QUICK)
def test_params_that_need_no_conversion_are_those_of_the_schema(name):
    bound_quickly(registry[name])


BOUND = sorted(name for name, op in registry.items() if hasattr(op.definition, "samples") and type(op) is type(rg.add))


def check_binding(op, args, kwargs):
    """Compare the binding of a call with the schema's; return whether the call was bound without it."""
    quick = op.quick_bind(args, kwargs)
    if quick is not None:
        inputs, params = op.schema.bind(args, kwargs)
        assert len(quick[0]) == len(inputs)
        assert all(a is b for a, b in zip(quick[0], inputs, strict=True))
        assert quick[1] == params
        assert list(quick[1]) == list(params)
    return quick is not None


@group_cases
@pytest.mark.parametrize("name", BOUND)
def test_a_call_in_any_form_is_bound_as_by_the_schema(name):
    op = registry[name]
    declared = op.schema.parameters
    needed = [p.name for p in declared if p.default is REQUIRED]
    for inputs, params in samples_of(op):
        named = {**op.schema.group(inputs), **params}
        count = sum(not p.keyword_only for p in declared)
        check_binding(op, (), named)
        for leading in range(1, count + 1):
            first = [p.name for p in declared[:leading]]
            if all(name in named for name in first):
                args = tuple([named[name] for name in first])
                rest = {name: value for name, value in named.items() if name not in first}
                check_binding(op, args, rest)
                assert op.quick_bind(args, named) is None, "an argument is given twice"
        assert op.quick_bind((), {**named, "no_argument": 1}) is None
        assert op.quick_bind(tuple(named.values()) + (1,) * (len(declared) + 1), {}) is None
        for name in needed:
            assert op.quick_bind((), {key: value for key, value in named.items() if key != name}) is None


# A name of inputs and params in turn, with inputs that may be left out, with dimensions or a flag, and with a list.
FORMS = {
    "gather": lambda x, i: ((x, 0, i), {}),
    "scatter": lambda x, i: ((x, 0, i), {"value": 2}),
    "layer_norm": lambda x, i: ((x, (3,)), {"bias": x}),
    "cross_entropy": lambda x, i: ((x, i), {"reduction": "sum"}),
    "max": lambda x, i: ((x,), {"dim": -1}),
    "var": lambda x, i: ((x, -1), {"unbiased": False}),
    "clamp": lambda x, i: ((x, 0, 1.5), {}),
    "einsum": lambda x, i: (("i->", [x]), {}),
}


@pytest.mark.parametrize("name", sorted(FORMS))
def test_inputs_and_params_in_turn_are_bound_without_the_schema(name):
    assert check_binding(registry[name], *FORMS[name](rg.ones(3), rg.tensor([0, 2, 1])))


@pytest.mark.parametrize("wrong", [True, "1", (1.0,), (True,), [1], rg.tensor(1)])
def test_values_that_need_conversion_or_an_error_are_left_to_the_schema(wrong):
    assert registry["var"].quick_bind((rg.ones(3), wrong), {}) is None
    assert registry["gather"].quick_bind((rg.ones(3), wrong, rg.tensor([0])), {}) is None


@pytest.mark.parametrize(
    ("name", "given"),
    [("sum", {"dtype": rg.float64}), ("amax", {"dim": None}), ("sum", {"dim": None, "dtype": None}),
     ("full", {"size": (2,), "fill_value": 1, "dtype": rg.int64})],
)  # fmt: skip
def test_dtypes_and_none_as_the_default_are_bound_without_the_schema(name, given):
    op = registry[name]
    inputs = (rg.ones(3),) if op.schema.inputs else ()
    assert op.quick_params(inputs, given) == op.schema.bind(inputs, given)[1]
    assert check_binding(op, inputs, given)


def test_none_is_left_to_the_schema_where_it_is_no_default():
    assert registry["topk"].quick_params((rg.ones(3), None), {}) is None
    assert registry["sum"].quick_params((rg.ones(3), (0,), None), {}) is None


LISTED = [
    (name, p.name) for name in QUICK for p in registry[name].schema.params if p.type.rstrip("?") in ("int[]", "int...")
]


@pytest.mark.parametrize(("name", "listed"), LISTED)
def test_an_integer_in_place_of_a_list_is_bound_without_the_schema(name, listed):
    op = registry[name]
    inputs, params = next(iter(samples_of(op)))
    args = (inputs,) if op.variadic else inputs
    for keywords in ({listed: 1}, params | {listed: 1}):
        quick = op.quick_params(args, keywords)
        assert quick is None or quick == op.schema.bind(args, keywords)[1]
    if {p.name for p in op.schema.params} == {listed, *op.schema.defaults}:
        assert op.quick_params(args, {listed: 1}) is not None
    for wrong in (True, 1.0, (1, True)):
        assert op.quick_params(args, {listed: wrong}) is None


@pytest.mark.parametrize("name", [name for name in QUICK if registry[name].spreads])
def test_sizes_given_one_by_one_are_bound_without_the_schema(name):
    op = registry[name]
    inputs = next(iter(samples_of(op)))[0]
    for sizes in ((2,), (2, 3), (1, 2, 3)):
        quick = op.quick_params((*inputs, *sizes), {})
        assert quick == op.schema.bind((*inputs, *sizes), {})[1]
    first = op.schema.positional_params[0]
    for wrong in ((2, 3.0), (2, True), (2, (3,)), ((2,), 3)):
        assert op.quick_params((*inputs, *wrong), {}) is None
    assert op.quick_params((*inputs, 2), {first: (2,)}) is None


@pytest.mark.parametrize("name", ["cat", "stack", "lstm_step", "gru_step", "lstm_layer"])
def test_an_operator_of_a_list_is_bound_without_its_schema(name):
    assert bound_quickly(registry[name])


def test_a_list_may_be_any_sequence_or_several_arguments():
    a, b = rg.ones(2), rg.zeros(2)
    for tensors in ([a, b], (a, b), rg.nn.ParameterList([a, b]), rg.stack([a, b])):
        assert rg.cat([*tensors]).tolist() == rg.hstack(tuple(tensors)).tolist() == [1, 1, 0, 0]
    assert [x.tolist() for x in rg.broadcast_tensors(a, b)] == [x.tolist() for x in rg.broadcast_tensors(*[a, b])]
    with pytest.raises(TypeError, match="takes 2 positional arguments, got 3"):
        registry["cat"]([a], 0, 0)


def test_another_thread_reads_all_slots_of_a_schema_or_none():
    schema = copy.copy(rg.add.schema)
    schema._slots = None
    declared, seen = schema.parameters, []

    class Watched(list):
        def __iter__(self):
            for parameter in declared:
                seen.append(schema._slots)  # as another thread would between two steps
                yield parameter

    schema.parameters = Watched(declared)
    assert len(schema.slots()) == len(declared)
    assert seen == [None] * len(declared)
