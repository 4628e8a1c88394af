"""Recurrent networks compared with PyTorch: outputs, states, gradients, parameter names, packed sequences."""

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd import nested, nn

RANDOM = np.random.default_rng(0)


def numbers(*shape):
    return RANDOM.uniform(-1, 1, shape)


def close(actual, expected, what=""):
    np.testing.assert_allclose(actual.tolist(), expected.tolist(), rtol=1e-6, atol=1e-8, err_msg=what)


def pair(name, *args, **settings):
    """Return the same network in both libraries, float64, with the peer's weights."""
    mine, peer = getattr(nn, name)(*args, **settings).double(), getattr(torch.nn, name)(*args, **settings).double()
    assert [(k, tuple(v.shape)) for k, v in mine.state_dict().items()] == [
        (k, tuple(v.shape)) for k, v in peer.state_dict().items()
    ]
    mine.load_state_dict({k: v.numpy() for k, v in peer.state_dict().items()})
    return mine, peer


def leaves(*arrays):
    mine = [rg.tensor(a, requires_grad=True) for a in arrays]
    return mine, [torch.tensor(a, requires_grad=True) for a in arrays]


def flat(value):
    return [part for item in value for part in flat(item)] if isinstance(value, tuple | list) else [value]


def agree(mine, peer, outs, wanted, xs, ys):
    for out, expected in zip(flat(outs), flat(wanted), strict=True):
        assert tuple(out.shape) == tuple(expected.shape)
        close(out.detach(), expected.detach())
    sum((out * rg.tensor(np.cos(np.arange(out.numel())).reshape(out.shape))).sum() for out in flat(outs)).backward()
    sum(
        (out * torch.tensor(np.cos(np.arange(out.numel())).reshape(tuple(out.shape)))).sum() for out in flat(wanted)
    ).backward()
    for x, y in zip(xs, ys, strict=True):
        close(x.grad, y.grad, "input")
    for name, parameter in peer.named_parameters():
        close(mine.get_parameter(name).grad, parameter.grad, name)


def state(name, *shape, proj=None):
    first = numbers(*shape[:-1], proj or shape[-1])
    return (first, numbers(*shape)) if name == "LSTM" else (first,)


NETWORKS = [
    ("RNN", {}, 1),
    ("RNN", {"nonlinearity": "relu", "num_layers": 2, "bidirectional": True}, 4),
    ("RNN", {"bias": False, "batch_first": True}, 1),
    ("LSTM", {"num_layers": 2, "bidirectional": True}, 4),
    ("LSTM", {"num_layers": 2, "proj_size": 2, "batch_first": True}, 2),
    ("LSTM", {"bidirectional": True, "proj_size": 3, "bias": False}, 2),
    ("GRU", {"num_layers": 3}, 3),
    ("GRU", {"bidirectional": True, "bias": False}, 2),
]


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(("name", "settings", "layers"), NETWORKS)
def test_networks_agree(name, settings, layers, given):
    mine, peer = pair(name, 3, 5, **settings)
    first = state(name, layers, 4, 5, proj=settings.get("proj_size")) if given else ()
    xs, ys = leaves(numbers(4, 6, 3) if settings.get("batch_first") else numbers(6, 4, 3), *first)
    hx, hy = (tuple(v[1:]) if name == "LSTM" else v[1] for v in (xs, ys)) if given else (None, None)
    agree(mine, peer, mine(xs[0], hx), peer(ys[0], hy), xs, ys)
    xs, ys = leaves(numbers(6, 3))
    agree(mine, peer, mine(xs[0]), peer(ys[0]), xs, ys)


@pytest.mark.parametrize("enforce_sorted", [True, False])
@pytest.mark.parametrize(("name", "settings", "layers"), NETWORKS)
def test_packed_sequences_agree(name, settings, layers, enforce_sorted):
    mine, peer = pair(name, 3, 5, **settings)
    lengths = [6, 4, 4, 1] if enforce_sorted else [4, 1, 6, 4]
    first = state(name, layers, 4, 5, proj=settings.get("proj_size"))
    xs, ys = leaves(numbers(6, 4, 3), *first)
    outs = []
    for library, network, values in ((rg, mine, xs), (torch, peer, ys)):
        rnn = library.nn.utils.rnn
        packed = rnn.pack_padded_sequence(values[0], lengths, enforce_sorted=enforce_sorted)
        out, last = network(packed, tuple(values[1:]) if name == "LSTM" else values[1])
        outs.append((*rnn.pad_packed_sequence(out), last))
        assert out.batch_sizes.tolist() == packed.batch_sizes.tolist()
    assert outs[0][1].tolist() == outs[1][1].tolist()
    agree(mine, peer, (outs[0][0], outs[0][2]), (outs[1][0], outs[1][2]), xs, ys)


@pytest.mark.parametrize(("name", "settings", "layers"), NETWORKS)
def test_nested_sequences_agree_with_packed_ones(name, settings, layers):
    mine, peer = pair(name, 3, 5, **settings)
    lengths = [4, 1, 6, 4]
    xs, ys = leaves(*(numbers(n, 3) for n in lengths))
    out, last = mine(nested.as_nested_tensor(xs))
    rnn = torch.nn.utils.rnn
    expected, final = peer(rnn.pack_sequence(ys, enforce_sorted=False))
    agree(mine, peer, ([*out.unbind()], last), (rnn.unpack_sequence(expected), final), xs, ys)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("name", "settings"), [("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {}), ("GRUCell", {})]
)
def test_cells_agree(name, settings, bias):
    mine, peer = pair(name, 3, 5, bias=bias, **settings)
    for batch in ((4,), ()):
        xs, ys = leaves(numbers(*batch, 3), *(numbers(*batch, 5) for _ in range(1 + (name == "LSTMCell"))))
        hx, hy = (tuple(v[1:]) if name == "LSTMCell" else v[1] for v in (xs, ys))
        mine.zero_grad()
        peer.zero_grad()
        agree(mine, peer, mine(xs[0], hx), peer(ys[0], hy), xs, ys)
        xs, ys = leaves(numbers(*batch, 3))
        agree(mine, peer, mine(xs[0]), peer(ys[0]), xs, ys)


def test_sequences_of_different_lengths_are_packed_and_padded_as_by_the_peer():
    parts = [numbers(n, 2) for n in (2, 4, 1)]
    found = []
    for library in (rg, torch):
        rnn, xs = library.nn.utils.rnn, [library.tensor(part) for part in parts]
        packed = rnn.pack_sequence(xs, enforce_sorted=False)
        padded, lengths = rnn.pad_packed_sequence(packed, True, -1.0, total_length=5)
        found.append(
            [
                *packed,
                padded,
                lengths,
                rnn.pad_sequence(xs),
                rnn.pad_sequence(xs, True, 7.0, "left"),
                *rnn.unpack_sequence(packed),
                *rnn.unpad_sequence(padded, lengths, True),
                rnn.invert_permutation(packed.sorted_indices),
            ]
        )
    for mine, peer in zip(*found, strict=True):
        close(mine, peer)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_the_first_weights_have_the_bounds_of_the_peer(name):
    mine = getattr(nn, name)(10, 16, num_layers=2)
    largest = [float(p.detach().abs().amax()) for p in mine.parameters()]
    assert max(largest) <= 0.25
    assert max(largest) > 0.24
