"""Normalization and per-example gradients under `vmap` over components of random lengths, compared with a loop."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.core import NotBatchedError
from retrograd.func import PerformanceWarning, functional_call, grad, jacfwd, vmap
from retrograd.nested import nested_tensor
from retrograd.nn import functional as F

pytestmark = pytest.mark.filterwarnings("error")  # no loop over the components

WIDTH = 4


def sentences(seed, *between):
    """Return components (n, *between, WIDTH) of random lengths n, one of them empty."""
    r = np.random.default_rng(seed)
    lengths = r.permutation([0, *r.integers(1, 6, 3)])
    return [rg.tensor(r.standard_normal((n, *between, WIDTH))) for n in lengths]


def dense(seed, *shape):
    return rg.tensor(np.random.default_rng(seed).standard_normal(shape))


def close(a, b):
    assert a.shape == b.shape
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-10)


def assert_is_the_loop(f, parts):
    for found, part in zip(vmap(f)(nested_tensor(parts)).unbind(), parts, strict=True):
        close(found, f(part))


NORMS = {
    "layer_norm": lambda x, w, b: F.layer_norm(x, (WIDTH,), w, b),
    "layer_norm without weights": lambda x, w, b: F.layer_norm(x, (WIDTH,)) + 0 * w * b,
    "layer_norm over two dimensions": lambda x, w, b: F.layer_norm(x, (3, WIDTH), w.expand(3, WIDTH)) + b,
    "rms_norm": lambda x, w, b: F.rms_norm(x, (WIDTH,), w) + b,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_norms_of_examples_and_their_gradients_are_those_of_a_loop(norm, seed):
    parts, w, b = sentences(seed, 3), dense(7, WIDTH), dense(8, WIDTH)

    def loss(x, w, b):
        return (norm(x, w, b) ** 3).sum()

    assert_is_the_loop(lambda x: norm(x, w, b), parts)
    for i in range(3):
        assert_is_the_loop(lambda x, i=i: grad(loss, i)(x, w, b), parts)
    assert_is_the_loop(lambda x: jacfwd(lambda w: loss(x, w, b))(w), parts)
    assert_is_the_loop(grad(lambda x: (grad(loss)(x, w, b) ** 2).sum()), parts)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_norms_of_examples_keep_the_dtype(dtype):
    x = nested_tensor([part.to(dtype) for part in sentences(0)])
    assert vmap(lambda c: F.layer_norm(c, (WIDTH,)))(x).dtype == dtype


def test_a_normalized_shape_that_does_not_fit_an_example_is_refused():
    with pytest.raises(ValueError, match=r"layer_norm: normalized_shape \(3,\) is not how shape \(j, 4\) ends"):
        vmap(lambda c: F.layer_norm(c, (3,)))(nested_tensor(sentences(0)))


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_gradients_of_a_transformer_for_each_sentence_are_those_of_a_loop(norm_first):
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, dropout=0.0, batch_first=True, norm_first=norm_first).double()
    parameters = {name: p.detach() for name, p in layer.named_parameters()}

    def loss(parameters, x):
        return (functional_call(layer, parameters, (x,)) ** 2).sum()

    parts = [part for part in sentences(1) if len(part)]
    found = vmap(grad(loss), in_dims=(None, 0))(parameters, nested_tensor(parts))
    for i, part in enumerate(parts):
        expected = grad(loss)(parameters, part)
        for name, gradient in found.items():
            close(gradient[i], expected[name])


def test_the_weight_gradient_of_a_dense_layer_sums_over_all_rows_of_an_example():
    weight = dense(3, 2, WIDTH)
    assert_is_the_loop(lambda x: grad(lambda w: (F.linear(x, w) ** 2).sum())(weight), sentences(2, 3))


def test_results_that_receive_no_cotangent_count_as_zero_for_all_examples():
    assert_is_the_loop(grad(lambda x: (x.chunk(2, -1)[0] ** 2).sum()), sentences(4))
    assert_is_the_loop(grad(lambda x: (x.chunk(2, -1)[0] ** 2).sum()), sentences(4, 3))

    def attend(x):
        return F.scaled_dot_product_attention(x, x, x).sum()

    parts = [part for part in sentences(5) if len(part)]
    assert_is_the_loop(grad(attend), parts)


NEED_THE_LOOP = {
    "group_norm": lambda x: F.group_norm(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "instance_norm": lambda x: F.instance_norm(x.T.unsqueeze(0)),
    "conv1d": lambda x: F.conv1d(x.T.unsqueeze(0), rg.ones(2, WIDTH, 1, dtype="float64")),
    "linalg.svdvals": rg.linalg.svdvals,
    "einsum": lambda x: rg.einsum("ij,kj->ik", x, x),
}


@pytest.mark.parametrize("name", NEED_THE_LOOP)
def test_an_operator_that_needs_the_ragged_size_is_named_and_runs_in_the_loop(name):
    f, parts = NEED_THE_LOOP[name], [dense(n, n, WIDTH) for n in (2, 3)]
    with pytest.raises(NotBatchedError, match=rf"^{name}: the size of a ragged dimension.*fallback='loop'"):
        vmap(f)(nested_tensor(parts))
    with pytest.warns(PerformanceWarning, match="example by example"):
        outs = vmap(f, fallback="loop")(nested_tensor(parts)).unbind()
    for found, part in zip(outs, parts, strict=True):
        close(found, f(part))
