"""Parts of models, on a nested tensor of shape (3, j, 4), as f(m, x)."""

from .common import classes, functional, other, twin
from .common import x as dense


def attention(m, x, **options):
    heads = x.unflatten(-1, (2, 2)).transpose(1, 2)
    return functional(m).scaled_dot_product_attention(heads, heads.sin(), heads.cos(), **options).transpose(1, 2)


def across(m, x):
    """Compute attention to components of other lengths."""
    there = other(m, x).unflatten(-1, (2, 2)).transpose(1, 2)
    heads = x.unflatten(-1, (2, 2)).transpose(1, 2)
    return functional(m).scaled_dot_product_attention(heads, there, there).transpose(1, 2)


def multihead(m, x, **options):
    layer = m.nn.MultiheadAttention(4, 2, batch_first=True, dtype=m.float64).eval()
    for i, p in enumerate(layer.parameters()):
        p.data = dense(m, *p.shape, seed=i)
    return layer(x, x, x, **options)[0]


def encoder(m, x, train=False, **options):
    layer = m.nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True, dtype=m.float64)
    for i, p in enumerate(layer.parameters()):
        p.data = dense(m, *p.shape, seed=i)
    return layer.train(train)(x, **options)


def convolved(m, x):
    return functional(m).conv1d(x.transpose(1, 2), dense(m, 5, 4, 3), padding=1)


MODELS = {
    "linear": lambda m, x: functional(m).linear(x, dense(m, 5, 4), dense(m, 5)),
    "linear without bias": lambda m, x: functional(m).linear(x, dense(m, 5, 4)),
    "linear of a weight that does not fit": lambda m, x: functional(m).linear(x, dense(m, 5, 3)),
    "x @ a matrix": lambda m, x: x @ dense(m, 4, 5),
    "x @ a matrix for each component": lambda m, x: x @ dense(m, 3, 4, 5),
    "x @ its transpose": lambda m, x: x @ x.transpose(1, 2),
    "its transpose @ x": lambda m, x: x.transpose(1, 2) @ x,
    "its transpose @ its twin": lambda m, x: x.transpose(1, 2) @ twin(m, x),
    "bmm": lambda m, x: m.bmm(x.transpose(1, 2), x),
    "einsum": lambda m, x: m.einsum("bij,jk->bik", x, dense(m, 4, 5)),
    "layer_norm": lambda m, x: functional(m).layer_norm(x, (4,)),
    "layer_norm with weight and bias": lambda m, x: functional(m).layer_norm(x, (4,), dense(m, 4), dense(m, 4)),
    "layer_norm of two dimensions": lambda m, x: functional(m).layer_norm(x.unflatten(-1, (2, 2)), (2, 2)),
    "rms_norm": lambda m, x: functional(m).rms_norm(x, (4,), dense(m, 4)),
    "normalize": lambda m, x: functional(m).normalize(x, dim=-1),
    "embedding": lambda m, x: functional(m).embedding(classes(m, x), dense(m, 4, 2)),
    "scaled_dot_product_attention": attention,
    "scaled_dot_product_attention, causal": lambda m, x: attention(m, x, is_causal=True),
    "scaled_dot_product_attention, scaled": lambda m, x: attention(m, x, scale=0.3),
    "scaled_dot_product_attention, a mask": lambda m, x: attention(
        m, x, attn_mask=m.nested.nested_tensor([m.ones(n, n) > 0 for n in (3, 1, 4)], layout=m.strided).unsqueeze(1)
    ),
    "scaled_dot_product_attention across": across,
    "MultiheadAttention": lambda m, x: multihead(m, x, need_weights=False),
    "MultiheadAttention with weights": multihead,
    "TransformerEncoderLayer, eval": encoder,
    "TransformerEncoderLayer, train": lambda m, x: encoder(m, x, train=True),
    "conv1d": convolved,
    "batch_norm": lambda m, x: functional(m).batch_norm(
        x.transpose(1, 2), dense(m, 4), dense(m, 4).abs(), training=False
    ),
    "mse_loss": lambda m, x: functional(m).mse_loss(x, x.sin()),
    "mse_loss of each": lambda m, x: functional(m).mse_loss(x, x.sin(), reduction="none"),
    "l1_loss of all": lambda m, x: functional(m).l1_loss(x, x.sin(), reduction="sum"),
    "binary_cross_entropy_with_logits": lambda m, x: functional(m).binary_cross_entropy_with_logits(x, x.sigmoid()),
    "cross_entropy": lambda m, x: functional(m).cross_entropy(x.transpose(1, 2), classes(m, x)),
    "kl_div": lambda m, x: functional(m).kl_div(m.log_softmax(x, -1), m.softmax(x.sin(), -1)),
    "cosine_similarity": lambda m, x: functional(m).cosine_similarity(x, x.sin(), dim=-1),
}
