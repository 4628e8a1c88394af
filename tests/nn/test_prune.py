"""Pruned tensors are their originals times masks, which later calls apply again."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.utils import prune


def layer(values=((3.0, -1.0, 2.0), (0.5, -4.0, 1.5))):
    made = nn.Linear(3, 2)
    made.weight = nn.Parameter(rg.tensor(values))
    return made


def test_a_pruned_weight_stays_pruned_while_its_original_is_trained():
    model = prune.l1_unstructured(layer(), "weight", 0.5)
    assert model.weight.tolist() == [[3, 0, 2], [0, -4, 0]]
    optimizer = rg.optim.SGD(model.parameters(), lr=1.0)
    model(rg.ones(3)).sum().backward()
    optimizer.step()
    model(rg.ones(3))
    assert model.weight.tolist() == [[2, 0, 1], [0, -5, 0]]
    assert model.weight_orig.tolist() == [[2, -1, 1], [0.5, -5, 1.5]]


def test_pruning_again_prunes_what_is_left():
    model = prune.l1_unstructured(layer(), "weight", 2)
    prune.ln_structured(model, "weight", 1, n=2, dim=0)
    assert model.weight_mask.tolist() == [[0, 0, 0], [0, 1, 1]]
    prune.l1_unstructured(model, "weight", 1)
    assert model.weight_mask.tolist() == [[0, 0, 0], [0, 1, 0]]
    assert len(next(iter(model._call_hooks.values())).function) == 3


def test_the_mask_of_several_methods_has_the_dtype_of_the_tensor():
    methods = prune.PruningContainer()
    method = prune.L1Unstructured(2)
    method._tensor_name = methods._tensor_name = "weight"
    methods.add_pruning_method(method)
    mask = methods.compute_mask(layer().weight.detach(), rg.tensor([[1, 1, 1], [0, 1, 1]]))
    assert mask.dtype == rg.float32
    assert mask.tolist() == [[1, 0, 1], [0, 1, 0]]


def test_removing_makes_the_pruned_values_a_parameter():
    model = prune.custom_from_mask(layer(), "weight", rg.tensor([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]))
    original = model.weight_orig
    assert prune.is_pruned(nn.Sequential(model))
    prune.remove(model, "weight")
    assert model.weight is original
    assert model.weight.tolist() == [[3, 0, 2], [0.5, -4, 0]]
    assert list(model.state_dict()) == ["bias", "weight"]
    assert not prune.is_pruned(model)
    assert not model._call_hooks


@pytest.mark.parametrize(("method", "count"), [("random_unstructured", 3), ("random_structured", 3)])
def test_random_methods_prune_the_amount(method, count):
    settings = {"dim": 0} if method[7:] == "structured" else {}
    model = getattr(prune, method)(layer(), "weight", 0.5, **settings)
    assert float((model.weight_mask == 0).sum()) == count
    if settings:
        assert sorted(model.weight_mask.sum(1).tolist()) == [0, 3]


def test_importance_scores_decide_instead_of_the_values():
    scores = rg.tensor([[0.0, 9.0, 9.0], [9.0, 9.0, 9.0]])
    model = prune.l1_unstructured(layer(), "weight", 1, importance_scores=scores)
    assert model.weight_mask.tolist() == [[0, 1, 1], [1, 1, 1]]


def test_the_state_of_a_pruned_module_contains_the_masks():
    model = prune.l1_unstructured(layer(), "weight", 2)
    third = prune.identity(nn.Linear(3, 2), "weight")
    third.load_state_dict(model.state_dict())
    assert third(rg.ones(3)).tolist() == model(rg.ones(3)).tolist()


def test_a_tensor_is_pruned_without_a_module():
    x = rg.tensor([3.0, 1.0, 2.0])
    assert prune.L1Unstructured(1).prune(x).tolist() == [3, 0, 2]
    assert prune.L1Unstructured(1).prune(x, importance_scores=-x * x + 9).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "error", "pattern"),
    [
        (lambda m: prune.l1_unstructured(m, "weight", 7), ValueError, "should be smaller than the number of param.*=6"),
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, r"either be a float in the range \[0, 1\]"),
        (lambda m: prune.random_unstructured(m, "weight", -1), ValueError, "non-negative integer"),
        (lambda m: prune.random_unstructured(m, "weight", "a"), TypeError, "amount must be int or float, got 'a'"),
        (lambda m: prune.ln_structured(m, "bias", 0.5, 2, 0), ValueError, "only be applied to multidimensional"),
        (lambda m: prune.ln_structured(m, "weight", 0.5, 2, 5), IndexError, "invalid index 5"),
        (lambda m: prune.remove(m, "weight"), ValueError, "'weight' of Linear has to be pruned before"),
        (lambda m: prune.l1_unstructured(m, "weight", 1, rg.ones(2)), ValueError, r"tensor, \(2, 3\), got \(2,\)"),
        (lambda m: prune.global_unstructured([m], prune.L1Unstructured, amount=1), TypeError, "must be pairs"),
        (
            lambda m: prune.global_unstructured([(m, "bias")], prune.LnStructured),
            TypeError,
            "which is str",
        ),
        (lambda m: prune.PruningContainer(3), TypeError, "expected a BasePruningMethod, got int"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_changes(call, error, pattern):
    model = layer()
    with pytest.raises(error, match=pattern):
        call(model)
    assert list(model.state_dict()) == ["weight", "bias"]
    assert not model._call_hooks
