"""Layers compared with PyTorch: the same weights and inputs give the same outputs and gradients."""

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd import nn

RANDOM = np.random.default_rng(0)


def numbers(*shape, low=-2.0, high=2.0):
    return RANDOM.uniform(low, high, shape).astype("float32")


def classes(count, *shape):
    return RANDOM.integers(0, count, shape)


def ours(value, wants_grad):
    if not isinstance(value, np.ndarray):
        return value
    return rg.tensor(value, requires_grad=wants_grad and value.dtype.kind == "f")


def theirs(value, wants_grad):
    if not isinstance(value, np.ndarray):
        return value
    return torch.tensor(value, requires_grad=wants_grad and value.dtype.kind == "f")


def close(actual, expected, what):
    """Assert that values are equal to 1e-5, relative to the largest entry if that is more than 1."""
    actual, expected = np.asarray(actual.tolist()), np.asarray(expected.tolist())
    largest = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * largest, err_msg=what)


def compare(mine, peer, args, kwargs=None):
    """Give both the same weights, run both, and compare outputs and the gradients of everything."""
    kwargs = kwargs or {}
    assert list(mine.state_dict()) == list(peer.state_dict())
    peer.load_state_dict({name: torch.tensor(value.tolist()) for name, value in mine.state_dict().items()})
    mine.load_state_dict({name: value.numpy() for name, value in peer.state_dict().items()})
    xs, ys = [ours(a, True) for a in args], [theirs(a, True) for a in args]
    out = mine(*xs, **{k: ours(v, False) for k, v in kwargs.items()})
    expected = peer(*ys, **{k: theirs(v, False) for k, v in kwargs.items()})
    outs, wanted = (out if isinstance(out, tuple) else (out,)), expected
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for i, (o, e) in enumerate(zip(outs, wanted, strict=True)):
        assert (o is None) == (e is None)
        if o is not None:
            assert o.shape == tuple(e.shape)
            close(o, e, f"output {i}")
    g = numbers(*outs[0].shape)
    (outs[0] * rg.tensor(g)).sum().backward()
    (wanted[0] * torch.tensor(g)).sum().backward()
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if y is not None and isinstance(y, torch.Tensor) and y.grad is not None:
            close(x.grad, y.grad, f"gradient of input {i}")
    for name, parameter in peer.named_parameters():
        close(mine.get_parameter(name).grad, parameter.grad, f"gradient of {name}")


T = torch.nn
LAYERS = {
    "Linear": (lambda m: m.Linear(4, 3), (2, 5, 4)),
    "Linear without bias": (lambda m: m.Linear(4, 3, bias=False), (4,)),
    "LayerNorm": (lambda m: m.LayerNorm((3, 4)), (2, 3, 4)),
    "LayerNorm without weights": (lambda m: m.LayerNorm(4, elementwise_affine=False, eps=0.1), (3, 4)),
    "LayerNorm without bias": (lambda m: m.LayerNorm(4, bias=False), (3, 4)),
    "ReLU": (lambda m: m.ReLU(), (3, 4)),
    "LeakyReLU": (lambda m: m.LeakyReLU(0.2), (3, 4)),
    "GELU": (lambda m: m.GELU(), (3, 4)),
    "GELU tanh": (lambda m: m.GELU(approximate="tanh"), (3, 4)),
    "SiLU": (lambda m: m.SiLU(), (3, 4)),
    "Sigmoid": (lambda m: m.Sigmoid(), (3, 4)),
    "Tanh": (lambda m: m.Tanh(), (3, 4)),
    "Softmax": (lambda m: m.Softmax(dim=1), (3, 4)),
    "LogSoftmax": (lambda m: m.LogSoftmax(dim=0), (3, 4)),
    "Flatten": (lambda m: m.Flatten(), (2, 3, 4)),
    "Flatten some": (lambda m: m.Flatten(0, 1), (2, 3, 4)),
    "Identity": (lambda m: m.Identity(), (2,)),
    "Dropout in evaluation": (lambda m: m.Dropout(0.5).eval(), (3, 4)),
    "Sequential": (lambda m: m.Sequential(m.Linear(4, 8), m.GELU(), m.Linear(8, 2)), (3, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_agrees(name):
    make, shape = LAYERS[name]
    compare(make(nn), make(T), [numbers(*shape)])


@pytest.mark.parametrize("padding_idx", [None, 0, -1])
def test_embedding_agrees(padding_idx):
    make = lambda m: m.Embedding(6, 3, padding_idx=padding_idx)  # noqa: E731
    compare(make(nn), make(T), [np.array([[0, 1, 5], [5, 5, 2]])])


PAIRS = {
    "MSELoss": {},
    "L1Loss": {},
    "SmoothL1Loss": {"beta": 0.7},
    "HuberLoss": {"delta": 0.7},
    "KLDivLoss": {"log_target": True},
    "BCEWithLogitsLoss": {},
}


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", PAIRS)
def test_loss_of_pairs_agrees(name, reduction):
    make = lambda m: getattr(m, name)(reduction=reduction, **PAIRS[name])  # noqa: E731
    compare(make(nn), make(T), [numbers(3, 4), numbers(3, 4)])


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_probabilities_agree(reduction):
    p, q = numbers(3, 4, low=0.01, high=0.99), numbers(3, 4, low=0.01, high=0.99)
    weight = numbers(4, low=0.1)
    compare(nn.BCELoss(reduction=reduction), T.BCELoss(reduction=reduction), [p, q])
    compare(nn.KLDivLoss(reduction=reduction), T.KLDivLoss(reduction=reduction), [np.log(p), q])
    compare(nn.KLDivLoss(reduction="batchmean"), T.KLDivLoss(reduction="batchmean"), [np.log(p), q])
    compare(
        nn.BCEWithLogitsLoss(rg.tensor(weight), pos_weight=rg.tensor(weight * 2), reduction=reduction),
        T.BCEWithLogitsLoss(torch.tensor(weight), pos_weight=torch.tensor(weight * 2), reduction=reduction),
        [numbers(3, 4), q],
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["CrossEntropyLoss", "NLLLoss"])
@pytest.mark.parametrize(("shape", "target"), [((5, 4), (5,)), ((2, 4, 3), (2, 3)), ((4,), ())])
def test_losses_of_classes_agree(name, reduction, shape, target):
    weight = numbers(4, low=0.1)
    settings = {"reduction": reduction, "ignore_index": 2}
    for smoothing in [{}, {"label_smoothing": 0.1}] if name == "CrossEntropyLoss" else [{}]:
        compare(
            getattr(nn, name)(rg.tensor(weight), **settings, **smoothing),
            getattr(T, name)(torch.tensor(weight), **settings, **smoothing),
            [numbers(*shape), np.asarray(classes(2, *target))],
        )


def test_cross_entropy_of_probabilities_agrees():
    target = np.exp(numbers(5, 4))
    target /= target.sum(1, keepdims=True)
    make = lambda m: m.CrossEntropyLoss(label_smoothing=0.2)  # noqa: E731
    compare(make(nn), make(T), [numbers(5, 4), target])


# -------------------------------------------------------------------------------------------------- attention

L, S, N, E, H = 3, 5, 2, 8, 2
PADDING = np.array([[False, False, False, True, True], [False, True, False, False, False]])
CAUSAL = np.triu(np.ones((L, L), bool), 1)


class SelfAttention:
    """Use one tensor as query, key and value."""

    def __new__(cls, base):
        class Wrapped(base.Module):
            def __init__(self, **settings):
                super().__init__()
                self.attention = base.MultiheadAttention(E, H, **settings)

            def forward(self, x, **kwargs):
                return self.attention(x, x, x, **kwargs)

        return Wrapped


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("masks", [{}, {"attn_mask": CAUSAL}, {"key_padding_mask": PADDING[:, :L]}])
def test_self_attention_agrees(need_weights, batch_first, masks):
    settings = {"batch_first": batch_first}
    x = numbers(N, L, E) if batch_first else numbers(L, N, E)
    compare(
        SelfAttention(nn)(**settings),
        SelfAttention(T)(**settings),
        [x],
        {"need_weights": need_weights, **masks},
    )


@pytest.mark.parametrize("settings", [{}, {"bias": False}, {"kdim": 6, "vdim": 7}])
@pytest.mark.parametrize(
    "masks",
    [
        {},
        {"key_padding_mask": PADDING, "attn_mask": np.eye(L, S) == 1},
        {"attn_mask": numbers(N * H, L, S)},
        {"average_attn_weights": False},
    ],
)
def test_cross_attention_agrees(settings, masks):
    make = lambda m: m.MultiheadAttention(E, H, batch_first=True, **settings)  # noqa: E731
    k, v = settings.get("kdim", E), settings.get("vdim", E)
    compare(make(nn), make(T), [numbers(N, L, E), numbers(N, S, k), numbers(N, S, v)], masks)


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_without_a_batch_agrees(need_weights):
    make = lambda m: m.MultiheadAttention(E, H)  # noqa: E731
    masks = {"key_padding_mask": PADDING[0], "need_weights": need_weights}
    compare(make(nn), make(T), [numbers(L, E), numbers(S, E), numbers(S, E)], masks)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_encoder_layer_agrees(norm_first, activation, batch_first):
    make = lambda m: m.TransformerEncoderLayer(  # noqa: E731
        E, H, 16, 0.0, activation, norm_first=norm_first, batch_first=batch_first
    )
    compare(make(nn), make(T), [numbers(L, L, E)], {"src_mask": CAUSAL, "is_causal": True})


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_encoder_agrees():
    def make(m):
        layer = m.TransformerEncoderLayer(E, H, 16, 0.0, batch_first=True)
        return m.TransformerEncoder(layer, 2, norm=m.LayerNorm(E))

    compare(make(nn), make(T), [numbers(N, S, E)], {"src_key_padding_mask": PADDING})


@pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("lengths", [(S, 1), (1, 2)])
@pytest.mark.parametrize("with_norm", [True, False])
@pytest.mark.parametrize("changes", [{}, {"norm_first": True}, {"nhead": 1}, {"bias": False}])
@pytest.mark.parametrize("kind", ["bool", "float", "left"])
def test_the_evaluated_encoder_agrees_also_at_padded_positions(lengths, with_norm, changes, kind):
    padding = np.arange(S) >= np.array(lengths)[:, None]
    padding = padding[:, ::-1].copy() if kind == "left" else padding
    padding = np.where(padding, -np.inf, 0.0).astype(np.float32) if kind == "float" else padding

    def make(m):
        settings = {"d_model": E, "nhead": 2, "dim_feedforward": 16, "dropout": 0.0, "batch_first": True, **changes}
        norm = m.LayerNorm(E) if with_norm else None
        return m.TransformerEncoder(m.TransformerEncoderLayer(**settings), 2, norm=norm).eval()

    mine, peer, x = make(nn), make(T), numbers(N, S, E)
    peer.load_state_dict({name: torch.tensor(value.tolist()) for name, value in mine.state_dict().items()})
    with rg.no_grad(), torch.no_grad():
        found = mine(ours(x, False), src_key_padding_mask=ours(padding, False))
        close(found, peer(theirs(x, False), src_key_padding_mask=theirs(padding, False)), "output")


# ------------------------------------------------------------------------------------------------- the rest


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clipping_agrees(norm_type, max_norm):
    grads = [numbers(3), numbers(2, 2)]
    mine = [rg.zeros(g.shape, requires_grad=True) for g in grads]
    peer = [torch.zeros(g.shape, requires_grad=True) for g in grads]
    for p, q, g in zip(mine, peer, grads, strict=True):
        p.grad, q.grad = rg.tensor(g), torch.tensor(g)
    close(
        nn.utils.clip_grad_norm_(mine, max_norm, norm_type),
        T.utils.clip_grad_norm_(peer, max_norm, norm_type),
        "norm",
    )
    for p, q in zip(mine, peer, strict=True):
        close(p.grad, q.grad, "clipped gradient")
    nn.utils.clip_grad_value_(mine, 0.3)
    T.utils.clip_grad_value_(peer, 0.3)
    for p, q in zip(mine, peer, strict=True):
        close(p.grad, q.grad, "gradient clipped by value")


INITS = {
    "uniform_": (-1.0, 3.0),
    "normal_": (1.0, 2.0),
    "trunc_normal_": (0.5, 1.0, -1.0, 1.5),
    "xavier_uniform_": (1.5,),
    "xavier_normal_": (1.5,),
    "kaiming_uniform_": (5**0.5,),
    "kaiming_normal_": (0.0, "fan_out", "relu"),
}


@pytest.mark.parametrize("name", INITS)
def test_initial_values_have_the_same_distribution(name):
    rg.manual_seed(0)
    torch.manual_seed(0)
    mine = np.asarray(getattr(nn.init, name)(rg.empty(200, 100), *INITS[name]).tolist())
    peer = np.asarray(getattr(T.init, name)(torch.empty(200, 100), *INITS[name]).tolist())
    for quantile in (0.0, 0.1, 0.5, 0.9, 1.0) if "uniform" in name or "trunc" in name else (0.1, 0.5, 0.9):
        a, b = np.quantile(mine, quantile), np.quantile(peer, quantile)
        assert abs(a - b) < 0.05 * peer.std()


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.Linear(100, 300),
        lambda m: m.Embedding(300, 100),
        lambda m: m.MultiheadAttention(100, 4),
        lambda m: m.TransformerEncoderLayer(100, 4, 200),
    ],
)
def test_layers_start_with_the_same_distribution(make):
    rg.manual_seed(0)
    torch.manual_seed(0)
    mine, peer = make(nn).state_dict(), make(T).state_dict()
    for name, value in peer.items():
        a, b = np.asarray(mine[name].tolist()), np.asarray(value.tolist())
        assert abs(a.std() - b.std()) <= 0.2 * b.std(), name
        assert abs(a.mean() - b.mean()) <= 0.5 * b.std() + 1e-6, name


@pytest.mark.parametrize("out_features", [(), (2, 3)])
@pytest.mark.parametrize("settings", [{}, {"bias": True, "reduction": "sum"}, {"label_smoothing": 0.1}])
def test_the_loss_of_a_linear_map_agrees_with_and_without_options(settings, out_features):
    x = numbers(4, 3)
    target = np.random.default_rng(0).integers(0, 5, (4, *out_features))
    options = [{}, {"options": "LinearCrossEntropyOptions"}] if settings != {"label_smoothing": 0.1} else [{}]
    for chosen in options if not out_features else [{}]:
        peer = torch.nn.LinearCrossEntropyLoss(
            3, 5, out_features=out_features, **settings, **{k: getattr(torch.nn, v)() for k, v in chosen.items()}
        )
        mine = nn.LinearCrossEntropyLoss(
            3, 5, out_features=out_features, **settings, **{k: getattr(nn, v)() for k, v in chosen.items()}
        )
        mine.load_state_dict(peer.state_dict())
        a, b = rg.tensor(x, dtype=rg.float32), torch.tensor(x, dtype=torch.float32)
        loss, its = mine(a, rg.tensor(target)), peer(b, torch.tensor(target))
        loss.backward()
        its.backward()
        assert loss.item() == pytest.approx(its.item(), rel=1e-5)
        grad, of_peer = mine.linear.weight.grad.tolist(), peer.linear.weight.grad.numpy()
        np.testing.assert_allclose(grad, of_peer, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "keywords",
    [
        {"acc_policy": "fast"}, {"chunking_method": "aspect_ratio:0"}, {"chunking_method": "rows"},
        {"batch_chunk_size": 0}, {"batch_chunk_size": 2.5}, {}, {"chunking_method": "aspect_ratio:4"},
        {"chunking_method": None, "batch_chunk_size": 3, "acc_policy": "compact", "allow_retain_graph": True},
    ],
)  # fmt: skip
def test_options_of_that_loss_are_checked_as_pytorchs(keywords):
    def outcome(m):
        try:
            m.nn.LinearCrossEntropyOptions(**keywords)
        except ValueError:
            return "refused"
        return "taken"

    assert outcome(rg) == outcome(torch)
