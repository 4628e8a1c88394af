"""Declarations of sizes by tensor and by examples, and dataclasses as arguments and results."""

from dataclasses import dataclass

import pytest

import retrograd as rg
from retrograd import export, nn
from retrograd.export import Dim


class Weighted(nn.Module):
    def forward(self, data, scale=2):
        x, y = data["pair"]
        return x + y[1:] * scale


@dataclass
class Points:
    x: rg.Tensor
    y: rg.Tensor | None = None


@dataclass
class Sums:
    total: rg.Tensor


class Summed(nn.Module):
    def forward(self, points):
        return Sums(points.x.sum() + (0 if points.y is None else points.y.sum()))


def test_sizes_of_nested_tensors_are_declared_by_tensor():
    x, y, shapes = rg.ones(3), rg.ones(4), export.ShapesCollection()
    n = Dim("n")
    shapes[x] = (n,)
    shapes[y][0] = n + 1
    assert len(shapes) == 2
    assert shapes[x] == (n,)
    module = export.export(Weighted(), ({"pair": (x, y)},), dynamic_shapes=shapes).module()
    assert module({"pair": (rg.ones(6), rg.ones(7))}).tolist() == [3.0] * 6
    with pytest.raises(ValueError, match="n"):
        module({"pair": (rg.ones(6), rg.ones(6))})


def test_tensors_without_a_declaration_keep_their_sizes():
    x, shapes = rg.ones(3), export.ShapesCollection()
    shapes[x] = {0: Dim("n")}
    given = shapes.dynamic_shapes(Weighted(), ({"pair": (x, rg.ones(4))},))
    assert given == {"data": {"pair": ({0: shapes[x][0]}, None)}, "scale": None}


def test_declarations_of_what_is_no_tensor_or_no_argument_are_refused():
    shapes = export.ShapesCollection()
    with pytest.raises(TypeError, match="expected a tensor of the example, got int"):
        shapes[3] = {0: Dim("n")}
    shapes[rg.ones(5)] = {0: Dim("n")}
    with pytest.raises(ValueError, match=r"a tensor of shape \(5,\), with .* is no argument"):
        export.export(nn.ReLU(), (rg.ones(5),), dynamic_shapes=shapes)


def test_sizes_that_differ_between_examples_vary():
    examples = export.AdditionalInputs()
    examples.add((rg.ones(4, 2),))
    examples.add((rg.ones(5, 2),))
    model = nn.Linear(2, 1)
    assert examples.dynamic_shapes(model, (rg.ones(3, 2),)) == {"input": (Dim.DYNAMIC, None)}
    program = export.export(model, (rg.ones(3, 2),), dynamic_shapes=examples)
    assert program.module()(rg.ones(9, 2)).shape == (9, 1)
    examples.verify(program)
    examples.add((rg.ones(4, 3),))
    with pytest.raises(ValueError, match="2"):
        examples.verify(program)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (({"pair": (rg.ones(3), rg.ones(4))},), {"scale": 3}, "only sizes of tensors may differ"),
        (({"pair": (rg.ones(3, 1), rg.ones(4))},), {}, "tensors of 1 dimensions"),
        (({"pair": (rg.ones(3),)},), {}, "arity"),
    ],
)
def test_examples_of_another_form_are_refused(args, kwargs, message):
    examples = export.AdditionalInputs()
    examples.add(args, kwargs)
    with pytest.raises(ValueError, match=message):
        export.export(Weighted(), ({"pair": (rg.ones(3), rg.ones(4))},), dynamic_shapes=examples)
    with pytest.raises(TypeError, match="args must be a tuple"):
        examples.add([rg.ones(3)])


def test_arguments_and_results_may_be_registered_dataclasses():
    export.register_dataclass(Points)
    export.register_dataclass(Sums, serialized_type_name="sums")
    for points, more in ((Points(rg.ones(2), rg.ones(3)), Points(rg.zeros(2), rg.ones(3))), (Points(rg.ones(2)),) * 2):
        module = export.export(Summed(), (points,)).module()
        result = module(more)
        assert type(result) is Sums
        assert result.total == Summed()(more).total
    with pytest.raises(ValueError, match="only dataclasses can be registered"):
        export.register_dataclass(int)
