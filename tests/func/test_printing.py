"""Tensors inside transforms are printed with their values."""

import retrograd as rg
from retrograd.func import functionalize, vmap


def test_a_view_is_printed_as_it_is_after_a_write_to_its_base():
    shown = []

    def f(x):
        part = x[:1]
        x.add_(1)
        shown.append(repr(part))
        return x

    vmap(f)(rg.zeros(2, 2))
    assert shown == ["BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[1.],\n            [1.]])\n)"]


def test_a_tensor_of_functionalize_names_its_kind():
    shown = []
    functionalize(lambda x: shown.append(repr(x)) or x)(rg.ones(2))
    assert shown == ["FunctionalTensor(lvl=1, value=\n    tensor([1., 1.])\n)"]


def test_a_tensor_of_a_trace_shows_its_type_only():
    shown = []
    rg.fx.trace(lambda x: shown.append(repr(x)) or x + 1, rg.ones(2))
    assert shown == ["tensor(float32[2], TraceLevel)"]
