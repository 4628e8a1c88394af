"""Nested and sparse tensors on the strict device: buffers and values are there, structures in host memory."""

import numpy as np
import pytest
from tests.devices import strict
from tests.devices.devices import is_on_strict

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F

RNG = np.random.default_rng(2)
COMPONENTS = [rg.from_numpy(RNG.normal(size=(n, 4))) for n in (2, 0, 5)]
WEIGHT = rg.from_numpy(RNG.normal(size=(4, 3)))
MATRIX = rg.from_numpy(np.where(RNG.random((5, 4)) < 0.4, RNG.normal(size=(5, 4)), 0))


def nested():
    return rg.nested.nested_tensor(COMPONENTS, layout=rg.jagged)


# Functions of a nested tensor and of a function that moves other operands to its device.
FUNCTIONS = {
    "elementwise": lambda n, to: F.gelu(n * 2 + n).where(n > 0, -n),
    "linear": lambda n, to: F.linear(n, to(WEIGHT.mT)),
    "product": lambda n, to: n @ to(WEIGHT),
    "layer norm": lambda n, to: F.layer_norm(n, (4,)),
    "softmax of features": lambda n, to: F.softmax(n, -1),
    "reshaped": lambda n, to: rg.cat([n, n], -1).chunk(2, -1)[1].unsqueeze(-1),
    "components": lambda n, to: n.unbind()[2],
    "sum of features": lambda n, to: n.sum(-1),
    "sum of rows": lambda n, to: n.sum(1),
    "mean of rows": lambda n, to: n.mean(1),
    "softmax of rows": lambda n, to: F.softmax(n, 1),
    "softmax of rows far below 0": lambda n, to: F.log_softmax(n - 1000, 1) + F.softmax(n - 1000, 1),
    "running sums": lambda n, to: n.cumsum(1),
    "sorted rows": lambda n, to: n.sort(1)[0],
    "padding": lambda n, to: rg.nested.to_padded_tensor(n, 0.0),
    "attention": lambda n, to: F.scaled_dot_product_attention(n, n, n),
    "products of components": lambda n, to: n @ n.transpose(1, 2),
}
# Copies from host memory, all others make none: of the weight; of the offsets, which are kept, and of divisors.
COPIES = {"linear": 1, "product": 1, "sum of rows": 1, "mean of rows": 2, "softmax of rows": 1}
COPIES["softmax of rows far below 0"] = 1
IN_HOST_MEMORY = {"running sums", "sorted rows", "products of components"}


def parts(x):
    return list(x.unbind()) if x.is_nested else [x]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_nested_tensors_give_the_results_and_gradients_of_host_memory(name):
    function, found = FUNCTIONS[name], []
    for where in ("cpu", "strict"):
        n, operands = nested().to(where), WEIGHT.to(where)
        assert n.device == where
        n.requires_grad_()
        with strict.counting() as moved:
            results = parts(function(n, lambda x, where=where: x.to(where)))
            sum(x.square().sum() for x in results).backward()
        tensors = [*results, *parts(n.grad)]
        assert all(is_on_strict(x) == (where == "strict") for x in (*tensors, operands))
        found.append([x.detach().cpu().numpy() for x in tensors])
    for on_device, expected in zip(*found, strict=True):
        np.testing.assert_allclose(on_device, expected, rtol=1e-9, atol=1e-12)
    if name in IN_HOST_MEMORY:
        assert moved["to host"] > 0
    else:
        assert moved == {"to host": 0, "from host": COPIES.get(name, 0)}


def test_a_transformer_layer_runs_on_nested_tensors_on_the_device():
    rg.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).double()
    full = rg.nested.nested_tensor([COMPONENTS[0], COMPONENTS[2]], layout=rg.jagged)
    expected = layer(full)
    there = full.to("strict")
    with strict.counting() as moved:
        out = layer.to("strict")(there)
        sum(x.square().sum() for x in out.unbind()).backward()
    assert moved == {"to host": 0, "from host": len(list(layer.parameters()))}
    for on_device, e in zip(out.unbind(), expected.unbind(), strict=True):
        np.testing.assert_allclose(on_device.detach().cpu().numpy(), e.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_products_give_the_results_and_gradients_of_host_memory(layout):
    found = []
    for where in ("cpu", "strict"):
        dense, factor = MATRIX.to(where), WEIGHT.to(where).detach()
        sparse = getattr(dense, layout)()
        assert sparse.device == where
        values = sparse.values().detach().requires_grad_()
        factor.requires_grad_()
        for _ in range(2):  # the first product copies the coordinates
            factor.grad = None
            with strict.counting() as moved:
                out = (sparse * 2) @ factor
                out.square().sum().backward()
        if layout == "to_sparse":
            assert moved == {"to host": 0, "from host": 0}
        tensors = [out, factor.grad, sparse.to_dense(), values]
        assert all(is_on_strict(x) == (where == "strict") for x in tensors)
        found.append([x.detach().cpu().numpy() for x in tensors])
    for on_device, expected in zip(*found, strict=True):
        np.testing.assert_allclose(on_device, expected, rtol=1e-12)


def test_sparse_tensors_move_to_the_device_and_back():
    there = MATRIX.to_sparse().to("strict")
    assert there.device == "strict"
    assert is_on_strict(there.values())
    assert there.cpu().to_dense().tolist() == MATRIX.tolist()
    assert (there + there).to_dense().tolist() == (2 * MATRIX).tolist()
