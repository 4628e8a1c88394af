"""Notebooks show tensors as tables; text from the graph is escaped."""

import pytest

import retrograd as rg


def test_a_small_tensor_is_a_table_with_all_its_numbers():
    shown = rg.tensor([[1.5, 2.0], [3.0, 1 / 3]], requires_grad=True)._repr_html_()
    assert "tensor of shape (2, 2), float32, requires grad" in shown
    assert shown.count("<tr>") == 2
    assert all(f">{text}<" in shown for text in ("1.5", "2", "3", "0.3333"))
    assert "&lt;" in (rg.ones(2, requires_grad=True) * 2)._repr_html_()


def test_of_a_large_one_both_ends_are_shown():
    shown = rg.arange(10_000).reshape(100, 100)._repr_html_()
    assert shown.count("<tr>") == 11
    assert ">0<" in shown
    assert ">9999<" in shown
    assert ">5050<" not in shown


@pytest.mark.parametrize(
    "make", [lambda: rg.tensor(1), lambda: rg.ones(2, 2, 2), lambda: rg.ones(0, 3),
             lambda: rg.nested.nested_tensor([[1], [2, 3]])],
)  # fmt: skip
def test_others_are_shown_as_text(make):
    assert make()._repr_html_().startswith("<pre>")


def test_inside_a_transform_the_text_is_shown():
    shown = []
    rg.func.vmap(lambda x: shown.append(x._repr_html_()) or x)(rg.ones(2, 3))
    assert shown[0].startswith("<pre>BatchedTensor(")


def test_graphs_are_pictures():
    module = rg.fx.symbolic_trace(lambda x: (x + 1).exp())
    assert module._repr_svg_() == module.graph._repr_svg_() == str(rg.fx.draw(module))
