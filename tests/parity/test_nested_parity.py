"""Nested tensors compared with torch.nested: the same programs give the same values, structures and kinds of errors."""

import re

import pytest
import torch

import retrograd as rg
import retrograd.nested  # (rg.nested)

from .nested import layouts, structure
from .nested.common import answer, as_lists, gradients, jagged, nested, plain, rows, strided
from .nested.derivatives import DIFFERENTIATED, WEIGHED, weights
from .nested.models import MODELS
from .nested.operators import BINARY, REDUCED, UNARY
from .nested.shapes import SHAPED
from .nested.strided import STRIDED
from .programs import assert_agreement, assert_same, cases, data

OPERATORS = {
    "unary": (UNARY, answer),
    "binary": (BINARY, answer),
    "reduced": (REDUCED, answer),
    "shaped": (SHAPED, answer),
    "models": (MODELS, answer),
    "gradient": (DIFFERENTIATED, gradients),
    "weights": (WEIGHED, weights),
}
TABLES = {
    "making": plain(structure.MAKING),
    "wrong": plain(structure.WRONG),
    "asking": plain(structure.ASKING),
    "padding": plain(structure.PADDING),
    **{f"layout, {name}": plain(layouts.of(name)) for name in layouts.NAMES},
    "lengths": plain(layouts.LENGTHS),
    **{
        table: jagged(functions, of) | strided(functions, STRIDED[table], of)
        for table, (functions, of) in OPERATORS.items()
    },
}
CASES = cases(TABLES)

MISSING = "PyTorch has no nested kernel for it"
BACKWARD = "PyTorch has it forward only"
RAGGED = "PyTorch has it along other dimensions only, not along the ragged one or that of the components"
FITS = "PyTorch compares who made the offsets, not the offsets"
STRIDED = "PyTorch has it in the other layout only"
MODULES = "PyTorch's attention layers take nested tensors for inference only, in fused kernels"
PLAIN = "where no size differs by construction the result is a plain tensor"
CHECKED = "what a structure is made of is checked, and the place named"

# Where PyTorch fails and retrograd does not, by reason.
FAILURES = {
    STRIDED: [
        "unary: exp, strided",
        "unary: pow, strided",
        "binary: x + a row, strided",
        "reduced: sum of all, strided",
        "reduced: sum along the last, strided",
        "shaped: x[..., 1:3], strided",
        "models: x @ a matrix, strided",
        "models: layer_norm, strided",
        "models: scaled_dot_product_attention, strided",
        "weights: x * a row, strided",
        "weights: embedding, strided",
    ],
    FITS: [
        "binary: x / its twin",
        "binary: maximum",
        "binary: atan2",
        "models: its transpose @ its twin",
        "models: cross_entropy",
        "gradient: x / its twin",
        "gradient: cross_entropy",
    ],
    MISSING: [
        "binary: addcmul",
        "binary: allclose",
        "binary: equal",
        "reduced: std of all",
        "reduced: var along the last",
        "reduced: var along the ragged",
        "reduced: std along the last",
        "reduced: std along the ragged",
        "reduced: logsumexp along the last",
        "reduced: logsumexp along the ragged",
        "reduced: norm along the last",
        "reduced: cumsum along the last",
        "reduced: cumsum along the ragged",
        "reduced: sort along the ragged",
        "reduced: topk along the last",
        "reduced: flip along the ragged",
        "shaped: x[[0, 2]]",
        "shaped: x[x > 0]",
        "shaped: index_select of components",
        "shaped: index_select of the last",
        "shaped: masked_select",
        "shaped: x[..., 0] = 1",
        "shaped: expand_as",
        "models: einsum",
        "models: normalize",
        "models: scaled_dot_product_attention, causal",
        "models: scaled_dot_product_attention, a mask",
        "models: conv1d",
        "models: batch_norm",
        "models: mse_loss",
        "models: mse_loss, strided",
        "models: mse_loss of each",
        "models: binary_cross_entropy_with_logits",
        "models: cosine_similarity",
        "gradient: logsumexp along the ragged",
        "gradient: cumsum along the ragged",
        "gradient: scaled_dot_product_attention, causal",
        "gradient: mse_loss",
        "gradient: mse_loss, strided",
    ],
    RAGGED: [
        "reduced: sum along the two, kept",
        "reduced: mean along the two, kept",
        "reduced: amax along the two, kept",
        "reduced: log_softmax along the ragged",
        "shaped: flatten of the ragged",
        "shaped: unsqueeze in front",
        "shaped: cat of components",
        "shaped: cat along the ragged",
        "shaped: select in the ragged",
        "shaped: x[1:]",
        "shaped: x[:, 0]",
        "shaped: x[:, 1:]",
        "models: x @ its transpose",
        "gradient: x[:, 0]",
    ],
    MODULES: [
        "models: MultiheadAttention",
        "models: MultiheadAttention, strided",
        "models: MultiheadAttention with weights",
        "models: TransformerEncoderLayer, eval",
        "models: TransformerEncoderLayer, train",
        "gradient: MultiheadAttention",
        "gradient: TransformerEncoderLayer, train",
    ],
    BACKWARD: [
        "gradient: sum along the last",
        "gradient: sum along the ragged",
        "gradient: mean along the ragged",
        "gradient: sum along the last, kept",
        "gradient: select in the last",
        "gradient: x[..., 1:3]",
        "weights: x * a number for each component",
    ],
}

# Where the results differ: the outcome of ours, the kind of error or "answers", and why.
DEVIATIONS = {
    "making: narrow by numbers, strided": ("answers", STRIDED),
    "making: narrow by tensors, strided": ("answers", STRIDED),
    "making: masked_select of a row": ("answers", "the tensor broadcasts against the mask"),
    "wrong: offsets that fall": ("ValueError", CHECKED),
    "wrong: offsets behind the end": ("ValueError", CHECKED),
    "wrong: offsets that are a matrix": ("ValueError", CHECKED),
    "wrong: a ragged size as a number": ("RuntimeError", "PyTorch trips over an attribute of its own"),
    "wrong: offsets of a dense tensor": ("RuntimeError", "all tensors have the method, and it says what it expects"),
    "wrong: to_padded_tensor to a smaller size": ("ValueError", "PyTorch cuts the components off and does not say so"),
    "asking: values, strided": ("answers", "the rows of the components, as in the other layout; PyTorch's are flat"),
    "asking: equal shapes of two": ("answers", "sizes are equal if the lengths are, whoever made them"),
    "asking: tolist": ("answers", MISSING),
    "padding: to_padded_tensor with holes": ("answers", "PyTorch has it without holes only"),
    "binary: x * one of other sizes": ("answers", "components broadcast as tensors do, here 1 row against 2"),
    "binary: x * one of other sizes, strided": ("answers", "components broadcast as tensors do, here 1 row against 2"),
    "shaped: select in the ragged, strided": ("answers", PLAIN),
    "models: its transpose @ x, strided": ("answers", PLAIN),
    "models: its transpose @ its twin, strided": ("answers", PLAIN),
    "models: bmm, strided": ("answers", PLAIN),
    "gradient: softmax along the ragged": ("answers", "PyTorch's is wrong, and right in the strided layout"),
}
DEVIATIONS |= {name: ("answers", reason) for reason, names in FAILURES.items() for name in names}


# Cases where PyTorch fails, whose functions take a component alone as well.
BY_COMPONENT = [
    "binary: addcmul",
    *(name for name in FAILURES[MISSING] if name.startswith("reduced") and "all" not in name),
    "reduced: log_softmax along the ragged",
    "reduced: sum along the two, kept",
    "reduced: mean along the two, kept",
    "reduced: amax along the two, kept",
    "shaped: index_select of the last",
    "shaped: cat along the ragged",
    "shaped: flatten of the ragged",
    "shaped: select in the ragged",
    "shaped: x[:, 0]",
    "shaped: x[:, 1:]",
    "models: x @ its transpose",
    "models: einsum",
    "models: normalize",
    "models: scaled_dot_product_attention, causal",
    "models: MultiheadAttention",
    "models: MultiheadAttention with weights",
    "models: TransformerEncoderLayer, train",
    "models: conv1d",
    "models: batch_norm",
    "models: mse_loss of each",
    "models: cosine_similarity",
]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
def test_it_agrees_with_torch(name):
    assert_agreement(CASES[name], DEVIATIONS.get(name))


@pytest.mark.parametrize("name", layouts.ERRORS)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_errors_have_the_words_of_torch_and_are_runtime_errors(name):
    program, words = layouts.ERRORS[name]
    for m in (torch, rg):
        with pytest.raises((RuntimeError, IndexError), match=re.escape(words)):
            program(m)


@pytest.mark.parametrize("name", BY_COMPONENT)
@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning", "ignore:(var|std)..:UserWarning")
def test_where_torch_fails_it_is_what_torch_gives_each_component(name):
    table, _, key = name.partition(": ")
    function = OPERATORS[table][0][key]
    found = data(as_lists(function(rg, nested(rg))))
    expected = [function(torch, part.unsqueeze(0)).squeeze(0) for part in rows(torch)]
    assert_same(found[1][1:] if found[0] is list else list(zip_rows(found)), data(expected)[1])


def zip_rows(found):
    """Return a plain result as those of its components."""
    dtype, array = found
    return [(dtype, row) for row in array]


def test_every_deviation_is_one_of_a_case():
    assert DEVIATIONS.keys() <= CASES.keys()
