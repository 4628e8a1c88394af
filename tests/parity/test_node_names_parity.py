"""The nodes of PyTorch's operators have the same names here, except for listed operators, whose reasons are given."""

import pytest
import torch

import retrograd as rg

from .operator_database.node_names import EXEMPTED, differentiable, node_names

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = differentiable()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in EXEMPTED])
def test_the_nodes_of_an_operator_have_pytorchs_names(name):
    theirs, ours = node_names(name)
    assert ours == theirs


@pytest.mark.parametrize("name", sorted(EXEMPTED))
def test_every_exemption_is_needed(name):
    theirs, ours = node_names(name)
    assert ours != theirs


# Calls whose nodes have names that depend on their arguments.
CALLS = [
    "x[0]", "x[1:]", "x[:, 1]", "x[None]", "x[:, None]", "x[0, 1:]", "x[1:, 0]", "x[...]", "x[m.tensor([0, 1])]",
    "x[x > 0]", "x.select(0, 1)", "x.narrow(0, 0, 1)", "x.reshape(4)", "x.view(4)", "x.flatten()", "x.unsqueeze(0)",
    "x.sum()", "x.sum(0)", "x.sum((0, 1))", "x.mean()", "x.mean(1)", "x.prod()", "x.prod(0)", "x[None].squeeze()",
    "x[None].squeeze(0)", "x[None, None].squeeze((0, 1))", "x @ x", "x @ v", "v @ v", "m.bmm(x[None], x[None])",
    "m.mm(x, x)", "m.mv(x, v)", "m.dot(v, v)", "m.nn.functional.linear(x, x, v)", "m.nn.functional.linear(x, x)",
    "m.nn.functional.linear(x[None], x, v)", "m.nn.functional.linear(x[None], x)", "x.split(1)[0]", "x.unbind()[0]",
    "m.split(m.cat([x, x]), [1, 2, 1])[0]", "x.cummax(0)[0]", "x.cummin(0)[0]", "x.median()", "x.nanmedian()",
    "x.clamp(0, 1)", "x.clamp(x, x)", "x.double()", "x.t().contiguous()", "x ** 2", "x.square()", "x.var()",
    "x.log1p()", "m.deg2rad(x)", "x.as_strided((2,), (1,))", "m.nn.functional.embedding(m.tensor([0]), x)",
    "m.nn.functional.relu6(x)", "m.nn.functional.logsigmoid(x)", "x.clone().mul_(2)", "m.linalg.inv(x + m.eye(2))",
    "x.norm()", "m.special.i0e(x)", "x.unfold(0, 1, 1)", "m.fft.rfft(x)", "m.div(x, 2, rounding_mode='floor')",
    "x ** 2.5", "x ** x", "m.tensor(2.0) ** x", "x.float_power(2)", "x.float_power(x)", "x.clone().pow_(x)", "x % 2",
    "x % x", "x.fmod(2)", "x.fmod(x)", "m.lerp(x, x, 0.5)", "m.lerp(x, x, x)", "x.round()", "x.round(decimals=2)",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_names_that_depend_on_the_call(call):
    ours, theirs = (
        eval(call, {"m": m, "x": m.ones(2, 2, requires_grad=True) * 1, "v": m.ones(2, requires_grad=True)})
        for m in (rg, torch)
    )
    assert ours.grad_fn.name() == theirs.grad_fn.name()


WRITES = {
    "to part of a tensor": "y[0] = 3.0",
    "by an operator to part of a tensor": "y[0].mul_(2)",
    "by an operator": "y.exp_()",
}


@pytest.mark.parametrize("what", WRITES)
def test_names_after_a_write(what):
    found = []
    for m in (rg, torch):
        known = {"y": m.ones(2, 2, requires_grad=True) * 1}
        exec(WRITES[what], known)
        found.append(known["y"].grad_fn.name().rpartition(":")[2])
    assert found[0] == found[1]


# Calls, and what their nodes have saved in PyTorch and here under the same names.
SAVED = {
    "x.sum()": "self_sym_sizes",
    "x.sum(1)": "self_sym_sizes dim keepdim",
    "x.mean()": "self_sym_sizes self_sym_numel",
    "x.mean(1, keepdim=True)": "self_sym_sizes self_sym_numel dim keepdim",
    "v.expand(2, 2)": "self_sym_sizes",
    "x.view(4)": "self_sym_sizes",
    "x.reshape(4)": "self_sym_sizes",
    "x[None].squeeze()": "self_sym_sizes",
    "x[0]": "self_sym_sizes",
    "x[1:]": "self_sym_sizes",
    "x.split(1)[0]": "dim",
    "x.index_select(0, m.tensor([0]))": "self_sym_sizes dim index",
    "x.gather(0, m.tensor([[0, 1]]))": "dim index",
    "x.diagonal()": "self_sym_sizes offset dim1 dim2",
    "x.amax(1)": "dim keepdim self result",
    "x.clamp(0, 1)": "min max self",
    "x.softmax(1)": "dim result",
    "x ** 2": "exponent self",
}


@pytest.mark.parametrize("call", SAVED)
def test_saved_values_have_pytorchs_names(call):
    theirs, ours = (
        eval(call, {"m": m, "x": m.ones(2, 2, requires_grad=True) * 3, "v": m.ones(2, requires_grad=True)}).grad_fn
        for m in (torch, rg)
    )
    for name in SAVED[call].split():
        assert f"_saved_{name}" in dir(theirs)
        assert _plain(getattr(ours, f"_saved_{name}")) == _plain(getattr(theirs, f"_saved_{name}"))


@pytest.mark.parametrize("call", ["x.sum()", "v.expand(2, 2)", "x.view(4)"])
def test_saved_sizes_stay_after_the_pass(call):
    for m in (torch, rg):
        y = eval(call, {"x": m.ones(2, 2, requires_grad=True) * 3, "v": m.ones(2, requires_grad=True)})
        y.sum().backward()
        assert "_saved_self_sym_sizes" in dir(y.grad_fn)
        assert tuple(y.grad_fn._saved_self_sym_sizes) == ((2,) if call[0] == "v" else (2, 2))


def _plain(value):
    return value.tolist() if hasattr(value, "tolist") else tuple(value) if isinstance(value, list | tuple) else value
