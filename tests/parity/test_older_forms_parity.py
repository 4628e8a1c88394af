"""Every loss with `size_average` and `reduce` takes them at PyTorch's positions, with PyTorch's results."""

import inspect
import itertools

import numpy as np
import pytest
import torch

import retrograd as rg

LAYERS = [
    name
    for name, kind in vars(torch.nn).items()  # NLLLoss2d is an older name, with any arguments
    if isinstance(kind, type) and {"size_average", "reduction"} <= set(inspect.signature(kind).parameters)
]
FUNCTIONS = [
    name
    for name, function in vars(torch.nn.functional).items()
    if inspect.isfunction(function) and "size_average" in inspect.signature(function).parameters and name[0] != "_"
]
numbers = np.random.default_rng(0)
ROWS = numbers.uniform(0.1, 0.9, (4, 3)).astype(np.float32)
CLASSES = np.array([0, 2, 1, 1])
SIGNS = np.array([1.0, -1.0, 1.0, -1.0], np.float32)
TARGETS = {
    "cross_entropy nll_loss multi_margin_loss": (CLASSES,),
    "cosine_embedding_loss": (ROWS[::-1].copy(), SIGNS),
    "margin_ranking_loss": (ROWS[::-1].copy(), np.sign(ROWS - 0.5)),
    "hinge_embedding_loss soft_margin_loss": (np.sign(ROWS - 0.5),),
    "multilabel_margin_loss": (np.array([[2, 0, -1]] * 4),),
    "multilabel_soft_margin_loss": ((ROWS > 0.5).astype(np.float32),),
    "triplet_margin_loss": (ROWS[::-1].copy(), ROWS**2),
}
IN_FUNCTIONS = {
    "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "L1Loss": "l1_loss",
    "CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "KLDivLoss": "kl_div",
    "MSELoss": "mse_loss", "SmoothL1Loss": "smooth_l1_loss", "PoissonNLLLoss": "poisson_nll_loss",
    "MarginRankingLoss": "margin_ranking_loss", "HingeEmbeddingLoss": "hinge_embedding_loss",
    "CosineEmbeddingLoss": "cosine_embedding_loss", "SoftMarginLoss": "soft_margin_loss",
    "MultiMarginLoss": "multi_margin_loss", "MultiLabelMarginLoss": "multilabel_margin_loss",
    "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss", "TripletMarginLoss": "triplet_margin_loss",
}  # fmt: skip


def operands(name, m):
    others = next((arrays for names, arrays in TARGETS.items() if name in names.split()), (ROWS**2,))
    return [m.from_numpy(a) for a in (ROWS, *others)]


def positional(parameters, average, reduce, reduction):
    """Return the arguments up to `reduction` in PyTorch's order; all others have their defaults."""
    given = {"size_average": average, "reduce": reduce, "reduction": reduction}
    names = list(parameters)[: list(parameters).index("reduction") + 1]
    return [given.get(name, parameters[name].default) for name in names]


@pytest.mark.filterwarnings("ignore:.*(size_average|batchmean|please use reduction)")
@pytest.mark.parametrize("name", sorted([*LAYERS, *FUNCTIONS]))
def test_a_loss_takes_the_older_arguments_at_their_positions(name):
    is_layer = name in LAYERS
    theirs = getattr(torch.nn, name) if is_layer else getattr(torch.nn.functional, name)
    ours = getattr(rg.nn, name) if is_layer else getattr(rg.nn.functional, name)
    parameters = dict(inspect.signature(theirs).parameters)
    function = IN_FUNCTIONS[name] if is_layer else name
    tensors = {m: operands(function, m) for m in (torch, rg)}
    if not is_layer:
        parameters = dict(list(parameters.items())[len(tensors[rg]) :])
    for average, reduce in itertools.product([None, True, False], repeat=2):
        for reduction in ("mean", "sum", "none"):
            given = positional(parameters, average, reduce, reduction)
            expected = theirs(*given)(*tensors[torch]) if is_layer else theirs(*tensors[torch], *given)
            found = ours(*given)(*tensors[rg]) if is_layer else ours(*tensors[rg], *given)
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-5, atol=1e-6)


# The deprecated signatures of PyTorch's operators, by name: tensors and numbers in their order.
VECTOR, MATRIX, BATCH = ROWS[0], ROWS[:3], ROWS[None, :3]
NUMBERS = {
    "add": (VECTOR, 2, VECTOR), "sub": (VECTOR, 2, VECTOR), "addcmul": (VECTOR, 2, VECTOR, VECTOR),
    "addcdiv": (VECTOR, 2, VECTOR, VECTOR), "addmm": (2, MATRIX, 3, MATRIX, MATRIX),
    "addmv": (2, VECTOR, 3, MATRIX, VECTOR), "addr": (2, MATRIX, 3, VECTOR, VECTOR),
    "addbmm": (2, MATRIX, 3, BATCH, BATCH), "baddbmm": (2, BATCH, 3, BATCH, BATCH),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*is deprecated")
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_before_tensors_scale_what_they_scale_in_pytorch(name):
    def results(m):
        given = [m.from_numpy(a.copy()) if isinstance(a, np.ndarray) else a for a in NUMBERS[name]]
        place = 1 if isinstance(given[0], int) else 0  # of the tensor whose method it is
        own, rest = given[place], given[:place] + given[place + 1 :]
        made = [getattr(m, name)(*given), getattr(own, name)(*rest)]
        if len([g for g in given if isinstance(g, int)]) == 2:
            made += [getattr(m, name)(*(g for i, g in enumerate(given) if i != 2))]
        return [*made, getattr(own, f"{name}_")(*rest)]

    for found, expected in zip(results(rg), results(torch), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-6)


@pytest.mark.filterwarnings("ignore:Implicit dimension")
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax_without_dim_takes_pytorchs(name):
    for rank in range(5):
        array = numbers.normal(size=(2, 3, 4, 2)[:rank]).astype(np.float32)
        expected = getattr(torch.nn.functional, name)(torch.from_numpy(np.asarray(array)))
        found = getattr(rg.nn.functional, name)(rg.from_numpy(np.asarray(array)))
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_lists_of_dimensions_are_those_of_pytorch():
    for lists in (
        ([0, 1], [1, 2]),
        ([0, 1], [1, 2], [2, 0]),
        ([30, 2], [2, 5]),
        ([30, 51], [51, 0]),
        ([..., 1], [1, 0]),
        ([..., 1], [1, 0], [0, ...]),
    ):
        given = {m: [m.from_numpy(MATRIX), lists[0], m.from_numpy(MATRIX**2), *lists[1:]] for m in (rg, torch)}
        np.testing.assert_allclose(rg.einsum(*given[rg]).numpy(), torch.einsum(*given[torch]).numpy(), rtol=1e-6)
