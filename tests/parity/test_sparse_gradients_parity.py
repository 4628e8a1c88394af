"""Sparse gradients of embeddings, optimizers that take them, and products with scales do what PyTorch's do."""

import numpy as np
import pytest
import torch

import retrograd as rg

pytestmark = pytest.mark.filterwarnings("ignore")
BATCHES = [[0, 2, 0], [0, 0, 2], [2, 4]]
OPTIMIZERS = [
    ("SGD", {}),
    ("SGD", {"maximize": True}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("SGD", {"momentum": 0.9, "dampening": 0.5}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("SparseAdam", {}),
    ("SparseAdam", {"betas": (0.5, 0.75), "eps": 0.01, "maximize": True}),
]
REFUSING = ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop", "RMSprop", "Adadelta", "Adafactor", "Muon"]
EMBEDDINGS = [
    ("embedding", (), {"sparse": True}),
    ("embedding", (), {"sparse": True, "padding_idx": 2}),
    ("embedding", (), {"sparse": True, "padding_idx": -3}),
    ("embedding", (), {"sparse": True, "max_norm": 0.5}),
    ("embedding_bag", ([0, 2],), {"sparse": True, "mode": "sum"}),
    ("embedding_bag", ([0, 2],), {"sparse": True, "mode": "mean"}),
    ("embedding_bag", ([0, 2],), {"sparse": True, "mode": "mean", "padding_idx": 0}),
    ("embedding_bag", ([0, 3],), {"sparse": True, "mode": "sum", "include_last_offset": True}),
    ("embedding_bag", ([0, 2],), {"sparse": True, "mode": "max"}),
    ("embedding", (), {"sparse": True, "scale_grad_by_freq": True}),
]


def rows(T):
    return (T.arange(10.0, dtype=T.float64).reshape(5, 2) / 10 + 1).requires_grad_()


def gradient(T, name, args, settings):
    weight, ids = rows(T), T.tensor([0, 2, 0])
    function = getattr(T.nn.functional, name)
    function(ids, weight, *map(T.tensor, args), **settings).pow(2).sum().backward()
    return weight.grad


@pytest.mark.parametrize(("name", "args", "settings"), EMBEDDINGS)
def test_entries_of_the_gradient_are_pytorchs(name, args, settings):
    try:
        expected = gradient(torch, name, args, settings)
    except (RuntimeError, ValueError) as error:
        with pytest.raises(type(error), match=str(error)):
            gradient(rg, name, args, settings)
        return
    found = gradient(rg, name, args, settings)
    assert found.is_sparse
    assert found._indices().tolist() == expected._indices().tolist()
    assert np.allclose(found._values().numpy(), expected._values().numpy(), rtol=1e-12)


def steps(T, name, settings):
    layer = T.nn.Embedding.from_pretrained(rows(T).detach(), freeze=False, sparse=True)
    optimizer = getattr(T.optim, name)(layer.parameters(), lr=0.1, **settings)
    for number, ids in enumerate(BATCHES):
        optimizer.zero_grad(set_to_none=number != 1)
        layer(T.tensor(ids)).pow(2).sum().backward()
        optimizer.step()
    state = next(iter(optimizer.state.values()), {})
    dense = {key: value.to_dense().tolist() if isinstance(value, T.Tensor) else value for key, value in state.items()}
    return layer.weight.detach().tolist(), dense


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
def test_steps_with_sparse_gradients_are_pytorchs(name, settings):
    expected, states = steps(torch, name, settings)
    found, own = steps(rg, name, settings)
    assert np.allclose(found, expected, rtol=1e-12)
    assert own.keys() == states.keys()
    for key in states:
        assert np.allclose(own[key], states[key], rtol=1e-12), key


def refusal(T, name, settings, sparse):
    layer = T.nn.Embedding(5, 2, sparse=sparse)
    optimizer = getattr(T.optim, name)(layer.parameters(), **settings)
    layer(T.tensor([0, 2])).sum().backward()
    with pytest.raises(RuntimeError) as error:
        optimizer.step()
    return str(error.value)


@pytest.mark.parametrize("name", REFUSING)
def test_other_optimizers_refuse_sparse_gradients_in_pytorchs_words(name):
    words = refusal(torch, name, {}, True).removesuffix(", please consider SparseAdam instead")
    assert (words.replace("Adam", name) if name == "AdamW" else words) in refusal(rg, name, {}, True)


@pytest.mark.parametrize(
    ("name", "settings", "sparse"), [("Adagrad", {"weight_decay": 0.1}, True), ("SparseAdam", {}, False)]
)
def test_settings_and_kinds_that_do_not_fit_are_refused_in_pytorchs_words(name, settings, sparse):
    assert refusal(torch, name, settings, sparse) in refusal(rg, name, settings, sparse)


def test_sparse_layers_print_the_same():
    for make in (lambda T: T.nn.Embedding(4, 2, sparse=True), lambda T: T.nn.EmbeddingBag(4, 2, sparse=True)):
        assert repr(make(rg)) == repr(make(torch))


# ---------------------------------------------------------------------------------------- products with scales


@pytest.mark.parametrize("recipe", ["TensorWise", "RowWise"])
@pytest.mark.parametrize("output_dtype", ["float32", "bfloat16"])
def test_scaled_products_are_pytorchs(recipe, output_dtype):
    r = np.random.default_rng(0)
    arrays = [r.standard_normal((16, 32), np.float32), r.standard_normal((16, 32), np.float32)]
    shapes = [(), ()] if recipe == "TensorWise" else [(16, 1), (1, 16)]
    scales = [r.random(shape, np.float32) for shape in shapes]
    results = []
    for T in (torch, rg):
        a, b = (T.tensor(x).to(T.float8_e4m3fn) for x in arrays)
        kind = getattr(T.nn.functional.ScalingType, recipe)
        given = [T.tensor(x) for x in scales]
        out = T.nn.functional.scaled_mm(a, b.t(), given[0], kind, given[1], kind, output_dtype=getattr(T, output_dtype))
        results.append(out.to(T.float64).numpy())
    tolerance = 1e-5 if output_dtype == "float32" else 2**-8
    assert np.allclose(*results, rtol=tolerance, atol=1e-5)
