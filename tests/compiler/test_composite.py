"""Nested and sparse tensors in compiled functions: the eager bits, one program for each structure."""

import warnings

import numpy as np
import pytest
from tests.case_groups import group_cases

import retrograd as rg
from retrograd import nn

from .comparison import numbers, observe

W = numbers(4, 3).requires_grad_()


def linear():
    """Return a layer with the same numbers at each call."""
    rg.manual_seed(0)
    return nn.Linear(4, 4)


LINEAR = linear()
rg.manual_seed(0)
ENCODER = nn.TransformerEncoderLayer(4, 2, 8, 0.1, "gelu", batch_first=True)
PARAMETERS = [W, *LINEAR.parameters(), *ENCODER.parameters()]


def nested(seed, sizes):
    """Return a nested tensor of rows of four numbers."""
    return rg.nested.nested_tensor([numbers(n, 4, seed=seed + n) for n in sizes])


def sparse(seed, where):
    """Return a 4 x 4 matrix with elements at the given rows and columns."""
    return numbers(4, 4, seed=seed) * where


def stored(x):
    """Return the plain tensors that a result consists of."""
    if x.is_nested:
        return [x.values(), *x.unbind()]
    return [x] if x.layout is rg.strided else [x.to_dense()]


NESTED = {
    "pointwise": lambda t: (t * 2).sin() + t,
    "linear": lambda t: LINEAR(t),
    "softmax along rows": lambda t: t.softmax(1),
    "mean": lambda t: t.mean(1),
    "padding": lambda t: t.to_padded_tensor(0.0),
    "components": lambda t: [c * 2 for c in t.unbind()],
    "one component": lambda t: t[1],
    "scores": lambda t: t @ t.transpose(1, 2),
    "encoder": lambda t: ENCODER(t),
}
SPARSE = {
    "product": lambda s: s @ W,
    "graph convolution": lambda s: (s @ (s @ W).relu()).softmax(1),
    "pointwise": lambda s: (s * 2.0).relu() + s,
    "sum": lambda s: s.sum(),
    "dense": lambda s: s.to_dense() * 2,
    "transpose": lambda s: s.t() @ W,
}


def outcome(f, x, recorded):
    """Return what is observed of a call, and of a backward pass from its results."""
    rg.manual_seed(5)
    for p in PARAMETERS:
        p.grad = None
    x.requires_grad_(recorded)
    out = f(x)
    parts = [part for o in (out if isinstance(out, list) else [out]) for part in stored(o)]
    roots = [part for part in parts if part.requires_grad]
    if recorded:
        sum(root.square().sum() for root in roots).backward()
    leaves = [p.grad for p in [x, *PARAMETERS] if p.grad is not None]
    return observe([part.detach() for part in parts]), observe([part for g in leaves for part in stored(g)])


def assert_compiled(f, inputs):
    """Check calls with and without a backward pass against eager ones; there is a program for each of `inputs`."""
    for recorded in (False, True):
        compiled = rg.compile(f, fullgraph=True)
        for _ in range(3):
            for make in inputs:
                assert outcome(compiled, make(), recorded) == outcome(f, make(), recorded)
        assert len(compiled.programs) == len(inputs)


@group_cases
@pytest.mark.parametrize("name", NESTED)
def test_nested_tensors(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_compiled(NESTED[name], [lambda: nested(0, (2, 3)), lambda: nested(9, (1, 4, 2))])


@group_cases
@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("convert", [rg.Tensor.to_sparse, rg.Tensor.to_sparse_csr], ids=["coo", "csr"])
def test_sparse_tensors(name, convert):
    patterns = [np.eye(4, dtype=bool), np.tri(4, dtype=bool)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = [lambda p=p: convert(sparse(1, rg.from_numpy(p))) for p in patterns]
        assert_compiled(SPARSE[name], made)


def test_a_whole_step_on_nested_tensors():
    def train(compile):
        rg.manual_seed(3)
        model = nn.TransformerEncoderLayer(4, 2, 8, 0.1, batch_first=True)
        optimizer = rg.optim.AdamW(model.parameters(), lr=0.01)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).values().square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        call = compile(step)
        losses = [call(nested(i, (2, 3) if i % 2 else (4, 1))) for i in range(8)]
        return observe(losses), observe([p.detach() for p in model.parameters()])

    assert train(lambda f: rg.compile(f, fullgraph=True)) == train(lambda f: f)


def test_a_write_to_a_nested_argument_reaches_the_caller():
    compiled = rg.compile(lambda t: t.mul_(2.0).add_(1.0), fullgraph=True)
    for seed in range(3):
        mine, its = nested(seed, (2, 3)), nested(seed, (2, 3))
        result = compiled(mine)
        its.mul_(2.0).add_(1.0)
        assert result is mine
        assert observe(mine.values()) == observe(its.values())


def test_the_buffer_of_a_nested_tensor_as_another_argument():
    def f(t, buffer):
        buffer.mul_(2.0)
        return t.values() + buffer

    compiled = rg.compile(f)
    for share in (True, False, True):
        results = []
        for call in (compiled, f):
            t = nested(0, (2, 3))
            buffer = t.values() if share else numbers(5, 4, seed=9)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                results.append(observe([call(t, buffer), t.values()]))
        assert results[0] == results[1]


def sparse_leaf(seed):
    """Return a sparse matrix of one pattern."""
    return sparse(seed, rg.from_numpy(np.tri(4, dtype=bool))).to_sparse()


@pytest.mark.parametrize("make", [lambda i: nested(i, (2, 3)), sparse_leaf], ids=["nested", "sparse"])
def test_a_leaf_gets_its_gradient_inside_of_the_call(make):
    def step(x):
        y = x * x
        (y.values() if y.is_nested else y.to_dense()).sum().backward()

    compiled = rg.compile(step, fullgraph=True)
    mine, its = make(0).requires_grad_(), make(0).requires_grad_()
    for _ in range(4):  # the first makes .grad, the others add to it
        compiled(mine)
        step(its)
        assert observe([x.clone() for x in stored(mine.grad)]) == observe([x.clone() for x in stored(its.grad)])
        assert mine.grad._version == its.grad._version
    assert len(compiled.programs) == 2
