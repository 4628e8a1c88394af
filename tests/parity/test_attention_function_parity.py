"""multi_head_attention_forward compared with PyTorch's: outputs, weights, gradients, and refused arguments."""

import inspect
from itertools import product

import numpy as np
import pytest
import torch

import retrograd as rg

L, S, N, E, H = 3, 4, 2, 6, 3
CAUSAL = np.triu(np.ones((L, S), bool), 2)
MASKS = {
    "none": {},
    "boolean": {"attn_mask": CAUSAL},
    "numbers": {"attn_mask": np.linspace(-1.0, 1.0, N * H * L * S).reshape(N * H, L, S)},
    "padding": {"key_padding_mask": np.array([[False, False, True, True], [False] * 4])},
    "both": {"attn_mask": CAUSAL, "key_padding_mask": np.array([[False, False, True, False], [False] * 4])},
}
VARIANTS = {
    "plain": {},
    "whole weights": {"average_attn_weights": False},
    "no weights": {"need_weights": False},
    "bias": {"bias": True, "add_zero_attn": True},
    "separate": {"use_separate_proj_weight": True},
    "static": {"static": True},
    "without batch": {"batch": False},
    "evaluated": {"training": False, "dropout_p": 0.5},
}
rng = np.random.default_rng(0)


def arguments(
    batch=True, bias=False, static=False, use_separate_proj_weight=False, add_zero_attn=False, dropout_p=0.0, **rest
):
    """Return the arguments as arrays, by name."""
    made = {
        "query": (L, N, E), "key": (S, N, E), "value": (S, N, E), "in_proj_weight": (3 * E, E),
        "in_proj_bias": (3 * E,), "out_proj_weight": (5, E), "out_proj_bias": (5,),
    }  # fmt: skip
    if use_separate_proj_weight:
        made |= {
            "key": (S, N, 2),
            "value": (S, N, 5),
            "q_proj_weight": (E, E),
            "k_proj_weight": (E, 2),
            "v_proj_weight": (E, 5),
        }
    made |= {"bias_k": (1, 1, E), "bias_v": (1, 1, E)} if bias else {}
    made |= {"static_k": (N * H, S, E // H), "static_v": (N * H, S, E // H)} if static else {}
    arrays = {name: rng.normal(size=shape) for name, shape in made.items()}
    if not batch:
        arrays |= {name: arrays[name][:, 0] for name in ("query", "key", "value")}
    settings = {
        "use_separate_proj_weight": use_separate_proj_weight,
        "add_zero_attn": add_zero_attn,
        "dropout_p": dropout_p,
    }
    nothing = {"bias_k": None, "bias_v": None, "embed_dim_to_check": E, "num_heads": H}
    return {**nothing, **settings, **rest, **arrays}


def answer(m, given):
    """Return the output, the weights, and the gradients of their sum with respect to all arrays."""
    tensors = {name: m.tensor(a) for name, a in given.items() if isinstance(a, np.ndarray)}
    leaves = [t.requires_grad_() for t in tensors.values() if t.is_floating_point()]
    out, weights = m.nn.functional.multi_head_attention_forward(**{**given, **tensors})
    loss = (out * out).sum() + (0 if weights is None else (weights**3).sum())
    grads = m.autograd.grad(loss, leaves, allow_unused=True)
    return [None if t is None else np.asarray(t.detach()) for t in (out, weights, *grads)]


@pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask")
@pytest.mark.parametrize(("variant", "mask"), list(product(VARIANTS, MASKS)))
def test_attention_agrees(variant, mask):
    given = {**arguments(**VARIANTS[variant]), **MASKS[mask]}
    if variant == "without batch":
        given |= {"key_padding_mask": given["key_padding_mask"][0]} if "key_padding_mask" in given else {}
        given |= {"attn_mask": given["attn_mask"][:H]} if given.get("attn_mask", CAUSAL).ndim == 3 else {}
    for mine, its in zip(answer(rg, given), answer(torch, given), strict=True):
        if mine is None or its is None:  # without a gradient, or one of zeros
            assert mine is None or not mine.any()
            assert its is None or not its.any()
        else:
            np.testing.assert_allclose(mine, its, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_causal_mask_may_be_named_as_such(need_weights):
    given = {
        **arguments(),
        "attn_mask": np.triu(np.ones((L, S), bool), 1),
        "is_causal": True,
        "need_weights": need_weights,
    }
    for mine, its in zip(answer(rg, given)[:2], answer(torch, given)[:2], strict=True):
        assert (mine is None) == (its is None)
        if mine is not None:
            np.testing.assert_allclose(mine, its, rtol=1e-9, atol=1e-9)


WRONG = {
    "is_causal": True,
    "embed_dim_to_check": 7,
    "num_heads": 4,
    "query": rng.normal(size=(L, E)),
    "value": rng.normal(size=(S + 1, N, E)),
    "in_proj_weight": None,
    "bias_k": rng.normal(size=(1, 1, E)),
    "static_k": rng.normal(size=(2, S, 2)),
    "attn_mask": np.zeros((L, S + 1), bool),
    "key_padding_mask": np.zeros((N, S, 1), bool),
}


@pytest.mark.parametrize("name", WRONG)
def test_arguments_that_do_not_fit_are_refused_by_both(name):
    given = {**arguments(), name: WRONG[name]}
    for m, errors in ((rg, (ValueError, RuntimeError)), (torch, (AssertionError, RuntimeError))):
        with pytest.raises(errors):
            answer(m, given)


def test_arguments_have_the_same_names_order_and_defaults():
    mine, its = (inspect.signature(m.nn.functional.multi_head_attention_forward) for m in (rg, torch))
    assert [(p.name, p.default) for p in mine.parameters.values()] == [
        (p.name, p.default) for p in its.parameters.values()
    ]
