"""Differentiated functions of nested tensors, by the nested tensor and by the other inputs."""

from .common import classes, functional, rows
from .common import x as dense
from .models import MODELS
from .operators import BINARY, REDUCED, UNARY
from .shapes import SHAPED

DIFFERENTIATED = {
    **{name: UNARY[name] for name in ("sin", "gelu")},
    **{
        name: BINARY[name]
        for name in (
            "x / its twin",
            "x * a matrix of one row",
            "x * a number for each component",
            "where",
        )
    },
    **{
        name: REDUCED[name]
        for name in (
            "sum of all",
            "mean of all",
            "sum along the last",
            "sum along the ragged",
            "mean along the last",
            "mean along the ragged",
            "amax along the ragged",
            "logsumexp along the ragged",
            "sum along the last, kept",
            "softmax along the last",
            "softmax along the ragged",
            "cumsum along the ragged",
        )
    },
    **{
        name: SHAPED[name]
        for name in (
            "heads and back",
            "transpose(1, 2)",
            "cat along the last",
            "select of a component",
            "select in the last",
            "x[0]",
            "x[:, 0]",
            "x[..., 1:3]",
        )
    },
    **{
        name: MODELS[name]
        for name in (
            "linear",
            "x @ a matrix",
            "its transpose @ x",
            "layer_norm with weight and bias",
            "rms_norm",
            "scaled_dot_product_attention",
            "scaled_dot_product_attention, causal",
            "scaled_dot_product_attention across",
            "MultiheadAttention",
            "TransformerEncoderLayer, train",
            "mse_loss",
            "cross_entropy",
        )
    },
}


def weights(function, layout, m):
    """Return derivatives with respect to weights: of a function of the library, a nested tensor, and them."""
    shapes, call = function
    leaves = [dense(m, *shape, seed=7 + i).requires_grad_() for i, shape in enumerate(shapes)]
    out = call(m, m.nested.nested_tensor(rows(m), layout=getattr(m, layout)), *leaves)
    parts = out.unbind() if getattr(out, "is_nested", False) else [out]
    sum((part * part).sum() for part in parts).backward()
    return [leaf.grad for leaf in leaves]


WEIGHED = {
    "linear": ([(5, 4), (5,)], lambda m, x, w, b: functional(m).linear(x, w, b)),
    "x @ a matrix": ([(4, 5)], lambda m, x, w: x @ w),
    "x @ a matrix for each component": ([(3, 4, 5)], lambda m, x, w: x @ w),
    "layer_norm": ([(4,), (4,)], lambda m, x, w, b: functional(m).layer_norm(x, (4,), w, b)),
    "rms_norm": ([(4,)], lambda m, x, w: functional(m).rms_norm(x, (4,), w)),
    "x * a row": ([(4,)], lambda m, x, w: x * w),
    "x * a number for each component": ([(3, 1, 1)], lambda m, x, w: x * w),
    "x * a number tensor": ([()], lambda m, x, w: x * w),
    "embedding": ([(4, 2)], lambda m, x, w: functional(m).embedding(classes(m, x), w)),
}
