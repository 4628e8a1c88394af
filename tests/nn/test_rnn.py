"""Recurrent networks: behavior that the comparison with PyTorch in tests/parity does not cover."""

import math

import pytest

import retrograd as rg
from retrograd import nested, nn
from retrograd.autograd import gradcheck

ALL = [nn.RNN, nn.LSTM, nn.GRU]


def test_the_networks_are_their_cells_step_by_step():
    cells = {nn.RNN: nn.RNNCell, nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell}
    for make, cell_of in cells.items():
        network, cell = make(2, 3), cell_of(2, 3)
        cell.load_state_dict({k.removesuffix("_l0"): v for k, v in network.state_dict().items()})
        x, state, outs = rg.randn(4, 5, 2), None, []
        for step in x:
            state = cell(step, state)
            outs.append(state[0] if isinstance(state, tuple) else state)
        assert float((rg.stack(outs) - network(x)[0]).abs().amax().detach()) < 1e-6


def test_an_lstm_of_one_number_is_its_formula():
    cell = nn.LSTMCell(1, 1, bias=False).double()
    for name, values in (("weight_ih", [0.1, 0.2, 0.3, 0.4]), ("weight_hh", [0.5, 0.6, 0.7, 0.8])):
        cell.load_state_dict({name: rg.tensor(values).reshape(4, 1)}, strict=False)
    sigmoid = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    h, c = cell(
        rg.tensor([2.0], dtype=rg.float64), (rg.tensor([3.0], dtype=rg.float64), rg.tensor([4.0], dtype=rg.float64))
    )
    i, f, g, o = (2 * a + 3 * b for a, b in ((0.1, 0.5), (0.2, 0.6), (0.3, 0.7), (0.4, 0.8)))
    expected = sigmoid(f) * 4 + sigmoid(i) * math.tanh(g)
    assert c.item() == pytest.approx(expected, rel=1e-6)
    assert h.item() == pytest.approx(sigmoid(o) * math.tanh(expected), rel=1e-6)


@pytest.mark.parametrize("make", ALL)
def test_derivatives_of_networks_are_right_for_nested_sequences_too(make):
    network = make(2, 2, bidirectional=True).double()
    x = nested.nested_tensor([rg.randn(3, 2), rg.randn(1, 2)], dtype=rg.float64, requires_grad=True)
    assert gradcheck(lambda t: network(t)[0].values(), x)
    dense = rg.randn(2, 2, 2, dtype=rg.float64).requires_grad_()
    assert gradcheck(lambda t: network(t)[0], dense)


@pytest.mark.parametrize("make", ALL)
def test_empty_sequences_keep_their_first_state(make):
    network = make(2, 3)
    x = nested.as_nested_tensor([rg.randn(2, 2), rg.zeros(0, 2), rg.randn(1, 2)])
    first = rg.randn(1, 3, 3)
    out, last = network(x, (first, first) if make is nn.LSTM else first)
    last = last[0] if make is nn.LSTM else last
    assert [len(part) for part in out.unbind()] == [2, 0, 1]
    assert last[0, 1].tolist() == first[0, 1].tolist()


def test_a_network_maps_over_examples():
    network, x = nn.GRU(2, 3), rg.randn(4, 5, 2)
    out = rg.vmap(lambda row: network(row)[0])(x)
    assert float((out.transpose(0, 1) - network(x.transpose(0, 1))[0]).abs().amax().detach()) < 1e-6


def test_dropout_acts_between_layers_in_training_only():
    network, x = nn.RNN(2, 3, num_layers=2, dropout=1.0), rg.randn(4, 1, 2)
    zeros = nn.RNN(3, 3)
    zeros.load_state_dict({k.replace("l1", "l0"): v for k, v in network.state_dict().items() if "l1" in k})
    assert float((network(x)[0] - zeros(rg.zeros(4, 1, 3))[0]).abs().amax().detach()) < 1e-6
    assert network.eval()(x)[0].tolist() != zeros(rg.zeros(4, 1, 3))[0].tolist()


def test_a_network_prints_what_differs_from_the_defaults():
    assert (
        repr(nn.LSTM(3, 4, 2, proj_size=2, batch_first=True))
        == "LSTM(3, 4, proj_size=2, num_layers=2, batch_first=True)"
    )
    assert repr(nn.GRUCell(3, 4, bias=False)) == "GRUCell(3, 4, bias=False)"


@pytest.mark.parametrize(
    ("make", "error", "pattern"),
    [
        (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError, "'tanh' or 'relu', got 'x'"),
        (lambda: nn.RNNBase("x", 3, 4), ValueError, "mode must be one of RNN_TANH"),
        (lambda: nn.GRU(3, 0), ValueError, "got 0 and 1"),
        (lambda: nn.GRU(3, 4, dropout=2), ValueError, "got 2"),
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "less than hidden_size, 4.* got 4"),
        (lambda: nn.LSTM(3, 4)(rg.zeros(0, 2, 3)), RuntimeError, "no steps"),
        (lambda: nn.LSTM(3, 4)(rg.zeros(5, 2, 4)), RuntimeError, "input_size=3 features"),
        (lambda: nn.LSTM(3, 4)(rg.zeros(5)), ValueError, "2 or 3 dimensions"),
        (lambda: nn.GRU(3, 4)(rg.zeros(5, 2, 3), rg.zeros(1, 3, 4)), RuntimeError, r"h_0 of shape \(1, 2, 4\)"),
        (lambda: nn.GRUCell(3, 4)(rg.zeros(2, 2, 3)), ValueError, "1 or 2 dimensions"),
        (lambda: nn.GRUCell(3, 4)(rg.zeros(2, 5)), RuntimeError, "input_size=3"),
        (lambda: nn.GRUCell(3, 4)(rg.zeros(2, 3), rg.zeros(3, 4)), RuntimeError, r"state of shape \(2, 4\)"),
        (lambda: nn.GRUCell(3, 0), ValueError, "hidden_size"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(make, error, pattern):
    with pytest.raises(error, match=pattern):
        make()


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_flatten_parameters_leaves_the_parameters_and_results(kind):
    model, x = kind(2, 3, 2, bidirectional=True), rg.randn(4, 1, 2)
    before, parameters = model(x)[0].tolist(), list(model.parameters())
    model.flatten_parameters()
    assert model(x)[0].tolist() == before
    assert all(p is q for p, q in zip(model.parameters(), parameters, strict=True))
