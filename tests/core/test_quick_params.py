"""Calls whose arguments need no conversion are bound without their schema, and as their schema binds them."""

import pytest

import retrograd as rg
from retrograd.core import registry
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
