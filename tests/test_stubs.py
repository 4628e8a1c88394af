"""The type stubs agree with the registry, and a type checker accepts their use."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from retrograd.core import Tensor, registry
from retrograd.testing.sampler import samples_of

ROOT = Path(__file__).resolve().parent.parent

RIGHT = """\
from typing import Any, assert_type

import numpy as np
import retrograd as rg

x = rg.tensor([[1.0, 2.0]], requires_grad=True)
y: rg.Tensor = x.sum(dim=0) + rg.softmax(x, -1) @ np.ones((2, 3)) * 2 - x[0]
y.backward(gradient=None)
assert x.grad is not None
columns: int = x.grad.reshape(2).float().shape[0]
halves: tuple[rg.Tensor, ...] = x.split(1)
array: np.ndarray = x.detach().numpy()
assert_type(x.max(), rg.Tensor)
assert_type(x.max(1), rg.return_types.max)
assert_type(x.max(dim=1, keepdim=True).values, rg.Tensor)
assert_type(x.max(x), rg.Tensor)
assert_type(x.topk(1).indices, rg.Tensor)
assert_type(rg.median(x, 0).values, rg.Tensor)
assert_type(rg.linalg.svd(x).Vh, rg.Tensor)
assert_type(rg.linalg.eigh(x).eigenvalues, rg.Tensor)
assert_type(rg.where(x > 0, x, 0.0), rg.Tensor)
assert_type(rg.where(x > 0), tuple[rg.Tensor, ...])
assert_type(rg.histogramdd(x, [2, 2]).bin_edges, tuple[rg.Tensor, ...])
assert_type(rg.unbind_copy(x), tuple[rg.Tensor, ...])
assert_type(rg.nn.functional.max_pool1d(x, 2), rg.Tensor)
assert_type(rg.nn.functional.max_pool1d(x, 2, return_indices=True)[1], rg.Tensor)
assert_type(x.unique(return_counts=True), tuple[rg.Tensor, ...])
values, places = x.sort()
assert_type(values, rg.Tensor)


class Model(rg.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.rest = rg.nn.Linear(2, 3), rg.nn.LSTM(3, 3)
        self.some: rg.nn.Module = self.first

    def forward(self, x: rg.Tensor, scale: float = 1.0) -> tuple[rg.Tensor, int]:
        assert_type(self.first(x), rg.Tensor)
        assert_type(self.rest(x)[1], tuple[rg.Tensor, rg.Tensor])
        assert_type(self.some(x, "of any type"), Any)
        return self.first(x) * scale, 1


class Untyped(rg.nn.Module):
    def forward(self, x, y=1):
        return x


model = Model()
assert_type(model(x), tuple[rg.Tensor, int])
assert_type(model(x, scale=2.0)[0], rg.Tensor)
assert_type(Untyped()(x, y=2), Any)
assert_type(rg.nn.MultiheadAttention(4, 2)(x, x, x)[0], rg.Tensor)
assert_type(rg.nn.GRUCell(2, 3)(x), rg.Tensor)
assert_type(rg.nn.MSELoss()(x, x), rg.Tensor)
"""
WRONG = {
    "rg.ones(2).summ()": '"Tensor" has no attribute "summ"',
    "rg.softmaxx(rg.ones(2), 0)": 'has no attribute "softmaxx"',
    "rg.ones(2).sum(dim='rows')": 'incompatible type "str"',
    "rg.ones(2).topk(1).value": 'has no attribute "value"',
    "rg.ones(2).max().solution": '"Tensor" has no attribute "solution"',
    "rg.exp()": 'Missing positional argument "x"',
    "rg.nn.Linear(2, 3)('x')": 'Argument 1 to "__call__" of "Module" has incompatible type "str"; expected "Tensor"',
    "rg.nn.ReLU()(rg.ones(2), dim=0)": 'Unexpected keyword argument "dim"',
    "rg.nn.ReLU()(rg.ones(2)).summ()": '"Tensor" has no attribute "summ"',
}


def call_text(schema, args, params):
    """Return the arguments of a call as text, the first by position: x for tensors, and what differs from defaults."""
    defaults = {p.name: p.default for p in schema.parameters}
    given = {**schema.group(args), **params}
    texts = {
        name: "x" if isinstance(value, Tensor) else repr(value)
        for name, value in given.items()
        if isinstance(value, Tensor) or value != defaults[name]
    }
    first, *rest = texts
    return [texts[first], *(f"{name}={texts[name]}" for name in rest)]


def named_tuple_fields():
    """Yield programs that read a field of a named tuple, as operators return it for their samples."""
    for operator in (o for o in registry.values() if o.public_names):
        for args, params in samples_of(operator) if hasattr(operator.definition, "samples") else ():
            positional, named = operator.call_arguments(args, params)
            out = operator(*positional, **named)
            if hasattr(out, "_fields"):
                first, *rest = call_text(operator.called_as, args, params)
                calls = [f"rg.{name}({', '.join([first, *rest])})" for name in operator.public_names]
                calls += [f"x.{name}({', '.join(rest)})" for name in operator.method_names if first == "x"]
                for field, value in zip(out._fields, out, strict=True):
                    kind = "rg.Tensor" if isinstance(value, Tensor) else "tuple[rg.Tensor, ...]"
                    yield from [f"assert_type({call}.{field}, {kind})" for call in calls]


def run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)


def test_stubs_are_up_to_date():
    found = run("tools/stubs.py", "--check")
    assert found.returncode == 0, f"run python tools/stubs.py: {found.stdout}{found.stderr}"


def test_the_catalogue_is_up_to_date():
    found = run("tools/catalogue.py", "--check")
    assert found.returncode == 0, f"run python tools/catalogue.py: {found.stdout}{found.stderr}"


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_the_documented_number_of_operators_is_that_of_the_catalogue(name):
    (told,) = re.findall(r"[Oo]ver (\d+) operators", (ROOT / name).read_text())
    (counted,) = re.findall(r"public name, (\d+) of them", (ROOT / "docs/catalogue.md").read_text())
    assert int(told) == int(counted) // 100 * 100


def test_the_type_checker_passes_a_right_program_and_not_wrong_ones(tmp_path):
    fields = sorted(set(named_tuple_fields()))
    assert len(fields) > 200
    programs = {"right.py": RIGHT + "\n".join(fields), "wrong.py": "import retrograd as rg\n" + "\n".join(WRONG)}
    for name, code in programs.items():
        (tmp_path / name).write_text(code)
    options = "--config-file=", "--cache-dir", str(tmp_path / "cache"), "--follow-imports=silent"
    found = run("-m", "mypy", *options, *[str(tmp_path / name) for name in programs])
    said = found.stdout.splitlines()
    assert said, found.stderr
    assert [line for line in said if "error" in line and "wrong.py" not in line and "Found" not in line] == []
    for number, message in enumerate(WRONG.values(), start=2):
        assert any(f"wrong.py:{number}: error" in line and message in line for line in said), (message, said)
