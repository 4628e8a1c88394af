"""Stored programs name the Functions that they call, and find them without importing anything."""

import json
import sys

import pytest

import retrograd as rg
from retrograd import export, fx
from retrograd.testing import assert_close

from ..functions import Steep, doubling


class Model(rg.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = rg.nn.Linear(3, 2)

    def forward(self, x):
        return Steep.apply(self.linear(x), 7.0)


def gradient(f, x):
    x = x.detach().requires_grad_()
    f(x).sum().backward()
    return x.grad


@pytest.mark.parametrize("name", ["folder", "whole.zip"])
def test_a_stored_program_keeps_the_derivative_of_a_function(tmp_path, name):
    model, x = Model(), rg.randn(4, 3)
    for program in (fx.trace(model, x), export.export(model, (x,))):
        export.save(program, tmp_path / name)
        loaded = export.load(tmp_path / name)
        run = loaded if isinstance(loaded, fx.GraphModule) else loaded.module()
        assert_close(gradient(run, x), gradient(model, x))


def test_the_rule_of_vmap_is_stored(tmp_path):
    def f(x):
        return rg.func.vmap(lambda x: Steep.apply(x, 7.0))(x)

    x = rg.randn(4, 3)
    export.save(fx.trace(f, x), tmp_path / "program")
    assert_close(gradient(export.load(tmp_path / "program"), x), rg.full((4, 3), 7.0))


def test_a_class_that_is_nowhere_by_name_is_given_to_load(tmp_path):
    double = doubling(rg, slope=7)
    export.save(fx.trace(double.apply, rg.ones(2)), tmp_path / "program")
    with pytest.raises(export.StorageError, match=r"'doubling.<locals>.Double'.*functions=\[Double\]"):
        export.load(tmp_path / "program")
    loaded = export.load(tmp_path / "program", functions=[double])
    assert gradient(loaded, rg.ones(2)).tolist() == [7.0, 7.0]


def test_a_function_in_a_branch_is_stored(tmp_path):
    double = doubling(rg, slope=7)

    def f(x):
        return rg.cond(x.sum() > 0, lambda x: double.apply(x), lambda x: x, (x,))

    export.save(fx.trace(f, rg.ones(2)), tmp_path / "program")
    with pytest.raises(export.StorageError, match=r"functions=\[Double\]"):
        export.load(tmp_path / "program")
    loaded = export.load(tmp_path / "program", functions=[double])
    assert gradient(loaded, rg.ones(2)).tolist() == [7.0, 7.0]
    assert gradient(loaded, -rg.ones(2)).tolist() == [1.0, 1.0]


def test_two_functions_of_one_name_are_not_stored(tmp_path):
    a, b = doubling(rg), doubling(rg)
    with pytest.raises(export.StorageError, match=r"two Functions that are both called .*Double"):
        export.save(fx.trace(lambda x: b.apply(a.apply(x)), rg.ones(2)), tmp_path / "program")
    assert not (tmp_path / "program").exists()


@pytest.mark.parametrize(
    "function",
    [
        ["tests.export.test_function_storage", "Model"],
        ["tests.export.test_function_storage", "gradient"],
        ["os", "system"],
        ["antigravity", "Function"],
        ["tests.export.test_function_storage", 3],
        "os:system",
    ],
)
def test_a_file_names_functions_only(tmp_path, function):
    export.save(fx.trace(lambda x: Steep.apply(x, 7.0), rg.ones(2)), tmp_path / "program")
    file = tmp_path / "program" / "graph.json"
    document = json.loads(file.read_text())
    [entry] = [v for v in document["operators"].values() if isinstance(v, dict)]
    assert entry == {"function": ["tests.functions", "Steep"], "batch": None}
    entry["function"] = function
    file.write_text(json.dumps(document))
    with pytest.raises(export.StorageError, match=r"graph\.json"):
        export.load(tmp_path / "program")
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("batch", [[[1], 3, "error"], [[True, False], -1, "error"], [[True, False], 3, "never"], [3]])
def test_a_batch_is_validated(tmp_path, batch):
    export.save(fx.trace(lambda x: rg.func.vmap(lambda x: Steep.apply(x, 7.0))(x), rg.ones(2)), tmp_path / "program")
    file = tmp_path / "program" / "graph.json"
    document = json.loads(file.read_text())
    [entry] = [v for v in document["operators"].values() if isinstance(v, dict)]
    assert entry["batch"] == [[True, False], 2, "error"]
    entry["batch"] = batch
    file.write_text(json.dumps(document))
    with pytest.raises(export.StorageError, match=r"graph\.json"):
        export.load(tmp_path / "program")
