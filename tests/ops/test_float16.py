"""Half precision: operators that sum or square many values compute in single precision and round once."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import registry

from ..case_groups import group_cases

F = rg.nn.functional
LONG = np.random.default_rng(0).uniform(0.1, 0.9, (3000, 4)).astype("float16")
CLASSES = rg.tensor(np.arange(3000) % 3)
PLACES = CLASSES[:, None].expand(3000, 4).contiguous()
EPS = 2.0**-10

# Functions of a long matrix, as those in double precision to four units in the last digit of the largest entry.
FUNCTIONS = {
    "sum": lambda x: x.sum(0),
    "sum of a view": lambda x: x.T.sum(1),
    "sum in half": lambda x: x.sum(0, dtype=x.dtype),
    "nansum": lambda x: rg.nansum(x, 0),
    "mean": lambda x: x.mean(0),
    "var": lambda x: x.var(0),
    "std": lambda x: x.std(0),
    "cumsum": lambda x: x.cumsum(0),
    "logsumexp": lambda x: rg.logsumexp(x, 0),
    "logcumsumexp": lambda x: rg.logcumsumexp(x, 0),
    "softmax": lambda x: rg.softmax(x, 0),
    "norm": lambda x: rg.linalg.vector_norm(x, dim=0),
    "norm 1": lambda x: rg.linalg.vector_norm(x, 1, dim=0),
    "norm 3": lambda x: rg.linalg.vector_norm(x, 3, dim=0),
    "matmul": lambda x: x.T @ x,
    "layer_norm": lambda x: F.layer_norm(x.T, (3000,)),
    "rms_norm": lambda x: F.rms_norm(x.T, (3000,)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "avg_pool": lambda x: F.avg_pool1d(x.T[None], 3000),
    "index_add": lambda x: rg.zeros(3, 4, dtype=x.dtype).index_add(0, CLASSES, x),
    "scatter_add": lambda x: rg.zeros(3, 4, dtype=x.dtype).scatter_add(0, PLACES, x),
    "index_put": lambda x: rg.zeros(3, 4, dtype=x.dtype).index_put((CLASSES,), x, accumulate=True),
    "embedding_bag": lambda x: F.embedding_bag(rg.arange(3000)[None], x, mode="sum"),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(0), dim=0),
    "cross_entropy": lambda x: F.cross_entropy(x, CLASSES),
    "a gradient that is broadcast": lambda x: x[:1].expand(3000, 4) * x.detach(),
}


def value_and_gradient(f, dtype):
    x = rg.tensor(LONG.astype(dtype)).requires_grad_()
    y = f(x)
    weights = np.random.default_rng(1).uniform(0.5, 1, y.shape).astype("float16").astype(dtype)
    (g,) = rg.autograd.grad(y, x, rg.tensor(weights))
    assert y.dtype == g.dtype == dtype
    return y.detach().numpy().astype("float64"), g.numpy().astype("float64")


@group_cases
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_of_many_numbers_keep_their_digits(name):
    found = value_and_gradient(FUNCTIONS[name], "float16")
    for ours, exact in zip(found, value_and_gradient(FUNCTIONS[name], "float64"), strict=True):
        assert np.abs(ours - exact).max() < 4 * EPS * np.abs(exact).max()


def test_a_dtype_that_is_given_is_that_of_the_result():
    x = rg.tensor(LONG)
    for f in (rg.sum, rg.nansum, lambda x, dim, dtype: rg.cumsum(x, dim, dtype=dtype), rg.softmax):
        for dtype in ("float16", "float32", "float64"):
            assert f(x, dim=0, dtype=dtype).dtype == dtype
    assert np.allclose(rg.sum(x, dim=0, dtype="float32").numpy(), LONG.astype("float64").sum(0), rtol=1e-6)


def test_operands_of_a_wider_dtype_win():
    x, weight = rg.tensor(LONG), rg.ones(4)
    assert rg.cosine_similarity(x, weight).dtype == "float32"


def test_running_statistics_of_half_precision_are_written():
    x, mean, var = rg.tensor(LONG) * 1000, rg.zeros(4, dtype="float16"), rg.ones(4, dtype="float16")
    out = F.batch_norm(x, mean, var, training=True, momentum=1.0)
    assert out.dtype == mean.dtype == "float16"
    assert np.allclose(mean.numpy(), x.float().mean(0).numpy(), rtol=1e-3)
    assert F.batch_norm(x, mean, rg.ones(4, dtype="float16")).dtype == "float16"


def test_tangents_and_second_derivatives_are_computed_in_single_precision_too():
    x, t = rg.tensor(LONG), rg.ones(3000, 4, dtype="float16")
    _, tangent = rg.func.jvp(lambda x: rg.linalg.vector_norm(x * 100, dim=0), (x,), (t,))
    exact = 100 * (LONG.astype(float) / np.linalg.norm(LONG.astype(float), axis=0)).sum(0)
    assert np.allclose(tangent.numpy(), exact, rtol=1e-2)
    h = rg.func.hessian(lambda x: rg.logsumexp(x, 0))(rg.tensor([3.0, 4.0], dtype="float16"))
    assert h.dtype == "float16"
    assert np.allclose(h.numpy(), 0.1966 * np.array([[1, -1], [-1, 1]]), rtol=5e-3)


def test_each_of_several_results_is_rounded():
    deviation, mean = rg.std_mean(rg.tensor(LONG), dim=0)
    assert (deviation.dtype, mean.dtype) == ("float16", "float16")


def test_the_trait_names_inputs():
    for op in registry.values():
        named = set(getattr(op.definition, "opmath", "").split())
        assert named <= {"x", *(p.name for p in op.schema.inputs)}, op.name
