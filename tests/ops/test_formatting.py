"""Tensors in f-strings."""

import pytest

import retrograd as rg


def test_a_tensor_without_dimensions_is_formatted_as_its_number():
    x = rg.tensor(0.5, requires_grad=True)
    assert f"{x} {x:.3f} {x:>6}" == "0.5 0.500    0.5"
    assert f"{rg.tensor(3)} {rg.tensor(True)}" == "3 True"


def test_a_tensor_with_dimensions_is_formatted_as_it_prints_and_takes_no_format():
    assert f"{rg.zeros(1)}" == "tensor([0.])"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{rg.zeros(1):.3f}"


def test_printing_an_example_of_vmap_asks_for_no_value():
    texts = []

    def square(x):
        texts.append(f"{x}")
        return x * x

    rg.func.vmap(square)(rg.zeros(2))
    assert texts[0].startswith("BatchedTensor(")
    with pytest.raises(RuntimeError, match="vmap"):
        rg.func.vmap(lambda x: x * len(f"{x:.3f}"))(rg.zeros(2))
