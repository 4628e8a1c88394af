"""Sparse gradients of embeddings: their entries, how they add up, and the optimizers that take them."""

import copy
import tracemalloc

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim

IDS = rg.tensor([[0, 1], [3, 0]])
TAKE_SPARSE = [optim.SGD, optim.Adagrad, optim.SparseAdam]


def table(**settings):
    weight = rg.arange(10.0, dtype=rg.float64).reshape(5, 2) / 10 + 1
    return nn.Embedding.from_pretrained(weight, freeze=False, sparse=True, **settings)


def test_the_gradient_has_an_entry_for_each_index():
    layer = table()
    (layer(IDS) * rg.arange(8.0).reshape(2, 2, 2)).sum().backward()
    g = layer.weight.grad
    assert g.layout is rg.sparse_coo
    assert not g.is_coalesced()
    assert g._indices().tolist() == [[0, 1, 3, 0]]
    assert g._values().tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]


@pytest.mark.parametrize("padding_idx", [1, -4])
def test_a_padding_index_has_no_entry(padding_idx):
    layer = table(padding_idx=padding_idx)
    layer(IDS).sum().backward()
    assert layer.weight.grad._indices().tolist() == [[0, 3, 0]]


def losses(layer):
    yield layer(IDS).square().sum()
    yield layer(rg.tensor([2, 0])).sum() * layer(rg.tensor([4])).sum()
    yield layer(rg.tensor([2])).sum() + layer.weight.square().sum()
    yield layer.weight.sum() + layer(rg.tensor([2])).sum() + layer(rg.tensor([1])).sum()


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("before", [None, "sparse", "dense"])
def test_sparse_gradients_add_up_to_the_dense_one(number, before):
    layer = table()
    dense = nn.Embedding.from_pretrained(layer.weight.detach().clone(), freeze=False)
    for one in (layer, dense):
        if before == "sparse":
            one(rg.tensor([4, 4])).square().sum().backward()
        elif before == "dense":
            one.weight.sum().backward()
        list(losses(one))[number].backward()
    assert layer.weight.grad.to_dense().tolist() == dense.weight.grad.tolist()
    assert layer.weight.grad.is_sparse == (number < 2 and before != "dense")


def test_transforms_give_the_dense_gradient():
    weight = rg.arange(10.0).reshape(5, 2)

    def loss(w, ids, sparse):
        return rg.nn.functional.embedding(ids, w, padding_idx=1, sparse=sparse).square().sum()

    many = rg.tensor([[0, 1], [3, 3]])
    for transform in (
        lambda sparse: rg.func.grad(loss)(weight, IDS, sparse),
        lambda sparse: rg.func.vmap(lambda ids: rg.func.grad(loss)(weight, ids, sparse))(many),
        lambda sparse: rg.func.vmap(lambda w: rg.func.grad(loss)(w, IDS, sparse))(weight.expand(3, 5, 2)),
        lambda sparse: rg.func.grad(lambda w: rg.func.vmap(lambda ids: loss(w, ids, sparse))(many).sum())(weight),
        lambda sparse: rg.func.grad(lambda w: rg.func.vmap(lambda x: loss(x, IDS, sparse))(w.expand(3, 5, 2)).sum())(
            weight
        ),
        lambda sparse: rg.func.jvp(lambda w: loss(w, IDS, sparse), (weight,), (weight + 1,))[1],
    ):
        assert transform(True).to_dense().tolist() == transform(False).tolist()


def test_a_sparse_gradient_can_be_differentiated():
    layer = table()
    (g,) = rg.autograd.grad(layer(IDS).pow(3).sum(), layer.weight, create_graph=True)
    g.to_dense().square().sum().backward()
    dense = layer.weight.detach().clone().requires_grad_()
    (g,) = rg.autograd.grad(rg.nn.functional.embedding(IDS, dense).pow(3).sum(), dense, create_graph=True)
    g.square().sum().backward()
    assert np.allclose(layer.weight.grad.to_dense().numpy(), dense.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_have_sparse_gradients(mode):
    bags = [nn.EmbeddingBag.from_pretrained(rg.ones(4, 2), freeze=False, mode=mode, sparse=s) for s in (True, False)]
    for bag in bags:
        bag(rg.tensor([0, 2, 0]), rg.tensor([0, 1])).square().sum().backward()
    assert bags[0].weight.grad.layout is rg.sparse_coo
    assert bags[0].weight.grad.to_dense().tolist() == bags[1].weight.grad.tolist()


# ------------------------------------------------------------------------------------------------- optimizers


def rows_after(make, sparse, settings, batches):
    """Return the rows of a table after steps with these batches of indices, and the optimizer."""
    layer = table()
    layer.sparse = sparse
    optimizer = make(layer.parameters(), lr=0.1, **settings)
    for ids in batches:
        optimizer.zero_grad()
        layer(rg.tensor(ids)).square().sum().backward()
        optimizer.step()
    return layer.weight.detach(), optimizer


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (optim.SGD, {}),
        (optim.SGD, {"maximize": True}),
        (optim.SGD, {"momentum": 0.9}),
        (optim.SGD, {"momentum": 0.9, "nesterov": True}),
        (optim.Adagrad, {}),
        (optim.Adagrad, {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ],
)
def test_a_step_with_a_sparse_gradient_is_the_dense_step(make, settings):
    batches = [[0, 2, 0], [0, 0, 2], [2, 4]]
    sparse, _ = rows_after(make, True, settings, batches)
    dense, _ = rows_after(make, False, settings, batches)
    assert np.allclose(sparse.numpy(), dense.numpy(), rtol=1e-12)


def test_sparse_adam_is_adam_if_each_row_has_entries_in_each_step():
    batches = [[0, 1, 2, 3, 4, 0], [4, 3, 2, 1, 0]]
    sparse, _ = rows_after(optim.SparseAdam, True, {"eps": 1e-30}, batches)
    dense, _ = rows_after(optim.Adam, False, {"eps": 1e-30}, batches)
    assert np.allclose(sparse.numpy(), dense.numpy(), rtol=1e-12)


def test_sparse_adam_leaves_rows_without_entries_and_their_means():
    rows, optimizer = rows_after(optim.SparseAdam, True, {}, [[0, 2], [2, 2]])
    (state,) = optimizer.state.values()
    start = table().weight
    for number, steps in enumerate([1, 0, 2, 0, 0]):
        assert (rows[number] != start[number]).all().item() == (steps > 0)
        assert state["exp_avg"][number].any().item() == (steps > 0)
    assert state["step"] == 2


@pytest.mark.parametrize("make", TAKE_SPARSE)
def test_states_of_sparse_steps_are_saved_and_loaded(make):
    settings = {"momentum": 0.9} if make is optim.SGD else {}
    first, optimizer = rows_after(make, True, settings, [[0, 2]])
    layer = table()
    with rg.no_grad():
        layer.weight.copy_(first)
    again = make(layer.parameters(), lr=0.1, **settings)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    layer(rg.tensor([2, 3])).square().sum().backward()
    again.step()
    assert layer.weight.tolist() == rows_after(make, True, settings, [[0, 2], [2, 3]])[0].tolist()


@pytest.mark.parametrize("make", [optim.Adam, optim.AdamW, optim.RMSprop, optim.Lion, optim.Muon, optim.Adafactor])
def test_other_optimizers_refuse_sparse_gradients_before_any_step(make):
    plain, layer = nn.Parameter(rg.ones(2, 2)), table()
    optimizer = make([plain, layer.weight])
    (plain.sum() + layer(IDS).sum()).backward()
    with pytest.raises(RuntimeError, match="does not support sparse gradients, please consider SparseAdam"):
        optimizer.step()
    assert plain.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert not optimizer.state


def test_what_does_not_fit_sparse_gradients_is_refused_before_any_step():
    layer = table()
    layer(IDS).sum().backward()
    for make in (optim.SGD, optim.Adagrad):
        with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse gradients"):
            make(layer.parameters(), weight_decay=0.1).step()
    dense = nn.Parameter(rg.ones(2))
    dense.sum().backward()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam"):
        optim.SparseAdam([layer.weight, dense]).step()
    assert layer.weight.tolist() == table().weight.tolist()
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 0\]\]"):
        optim.SparseAdam([rg.eye(2).to_sparse().requires_grad_()])


def test_momentum_continues_when_gradients_become_dense_and_sparse_again():
    layer = table()
    optimizer = optim.SGD(layer.parameters(), lr=0.1, momentum=0.5)
    dense = table()
    dense.sparse = False
    same = optim.SGD(dense.parameters(), lr=0.1, momentum=0.5)
    for sparse in (True, False, True):
        layer.sparse = sparse
        for one, its in ((layer, optimizer), (dense, same)):
            its.zero_grad()
            one(IDS).square().sum().backward()
            its.step()
    assert np.allclose(layer.weight.detach().numpy(), dense.weight.detach().numpy(), rtol=1e-12)


def test_lbfgs_takes_sparse_gradients():
    layer = table()
    optimizer = optim.LBFGS(layer.parameters(), lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = layer(IDS).square().sum()
        loss.backward()
        return loss

    first = closure().item()
    optimizer.step(closure)
    assert closure().item() < 1e-3 * first


def test_sparse_gradients_are_clipped_by_norm_and_by_value():
    layer = table()
    (layer(IDS) * 3).sum().backward()
    dense = layer.weight.grad.to_dense()
    total = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    assert total.item() == pytest.approx(dense.norm().item())
    assert layer.weight.grad.to_dense().norm().item() == pytest.approx(1.0, rel=1e-5)
    nn.utils.clip_grad_value_(layer.parameters(), 0.25)
    assert layer.weight.grad.to_dense().max().item() == 0.25


def test_the_gradient_scaler_unscales_sparse_gradients():
    layer = table()
    optimizer, scaler = optim.SGD(layer.parameters(), lr=0.1), rg.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(layer(IDS).sum()).backward()
    scaler.unscale_(optimizer)
    assert layer.weight.grad.to_dense().tolist()[0] == [2.0, 2.0]
    scaler.step(optimizer)
    scaler.update()
    before = layer.weight.tolist()
    assert before[0] == pytest.approx([0.8, 0.9])
    optimizer.zero_grad()
    scaler.scale(layer(rg.tensor([2])).sum() * float("inf")).backward()
    scaler.step(optimizer)
    assert layer.weight.tolist() == before


def test_adding_a_sparse_tensor_in_place_leaves_the_other_memory():
    x = rg.zeros(3, 2)
    x.add_(rg.sparse_coo_tensor([[0, 2, 0]], rg.ones(3, 2), (3, 2)), alpha=2)
    assert x.tolist() == [[4.0, 4.0], [0.0, 0.0], [2.0, 2.0]]
    version = x._version
    x.sub_(rg.sparse_coo_tensor([[1], [1]], [3.0], (3, 2)))
    assert x.tolist() == [[4.0, 4.0], [0.0, -3.0], [2.0, 2.0]]
    assert x._version > version
    recorded = rg.ones(3, requires_grad=True) * 1
    sparse = rg.eye(3).to_sparse()[0].clone().requires_grad_()
    recorded.add_(sparse)
    (recorded * rg.arange(3.0)).sum().backward()
    assert sparse.grad.to_dense().tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match=r"result type Float can't be cast|same size"):
        rg.zeros(3, dtype=rg.int64).add_(rg.eye(3).to_sparse()[0])


def test_a_step_allocates_for_the_entries_only():
    rows = 1000
    layer = nn.Embedding(rows, 4, sparse=True)
    optimizer = optim.SparseAdam(layer.parameters())
    layer(rg.tensor([5, 7])).sum().backward()
    optimizer.step()  # makes the running means
    optimizer.zero_grad()
    layer(rg.tensor([5, 9])).sum().backward()
    tracemalloc.start()
    optimizer.step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < layer.weight.nbytes
