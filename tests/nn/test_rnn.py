"""Recurrent networks: behavior that the comparison with PyTorch in tests/parity does not cover."""

import math

import optree
import pytest

import retrograd as rg
from retrograd import kernels, nested, nn
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


MODES = [(nn.RNN, {}), (nn.RNN, {"nonlinearity": "relu"}), (nn.LSTM, {}), (nn.GRU, {})]


def _packed(x, lengths):
    return nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)


def _outputs(network, x):
    out, last = network(x)
    return [out.data if isinstance(out, nn.utils.rnn.PackedSequence) else out, *optree.tree_leaves(last)]


def _sum_of_squares(parts):
    return sum((part * part).sum() for part in parts)


def _results(network, prepare, x):
    """Return outputs and last states, their gradients, recorded and not, and the gradients of a norm of these."""
    leaves, found = [x, *network.parameters()], _outputs(network, prepare(x))
    first = rg.autograd.grad(_sum_of_squares(found), leaves, create_graph=True)
    second = rg.autograd.grad(_sum_of_squares(first), leaves)
    plain = rg.autograd.grad(_sum_of_squares(_outputs(network, prepare(x))), leaves)
    return [part.detach() for part in (*found, *first, *second, *plain)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(("make", "settings"), MODES)
def test_one_operator_computes_what_single_steps_compute(make, settings, packed, bias, monkeypatch):
    network = make(3, 5, num_layers=2, bidirectional=True, bias=bias, **settings).double()
    x = rg.randn(4, 6, 3, dtype=rg.float64).requires_grad_()
    prepare = (lambda x: _packed(x, [2, 4, 1, 3, 4, 2])) if packed else lambda x: x
    found = _results(network, prepare, x)
    monkeypatch.setattr("retrograd.nn.rnn.supports_layer", lambda *given: False)
    for one, other in zip(found, _results(network, prepare, x), strict=True):
        assert float(((one - other) / (1 + other.abs())).abs().amax()) < 1e-11


@pytest.mark.parametrize(("make", "settings"), MODES)
def test_a_layer_is_one_node_of_the_graph(make, settings):
    network = make(3, 5, **settings)
    _, last = network(rg.randn(4, 6, 3))
    node = optree.tree_leaves(last)[0].grad_fn.next_functions[0][0]
    assert node.name().endswith("LayerBackward0")


def test_gradients_of_both_biases_have_memory_of_their_own():
    network = nn.LSTM(2, 3)
    network(rg.randn(4, 5, 2))[0].sum().backward()
    both = network.bias_ih_l0.grad, network.bias_hh_l0.grad
    expected = both[1].tolist()
    assert both[0].tolist() == expected
    both[0].zero_()
    assert both[1].tolist() == expected


@pytest.mark.parametrize(("make", "settings"), MODES)
def test_results_do_not_depend_on_the_number_of_threads(make, settings):
    network, x, before = make(3, 17, **settings), rg.randn(3, 41, 3).requires_grad_(), rg.get_num_threads()
    found = []
    try:
        for threads, grain_size in ((1, 0), (3, 1), (1, -1)):
            rg.set_num_threads(threads)
            kernels.set_grain_size(grain_size)
            out = network(x)[0]
            found.append([out, *rg.autograd.grad(out.sin().sum(), [x, *network.parameters()])])
    finally:
        rg.set_num_threads(before)
        kernels.set_grain_size(0)
    for others in found[1:]:
        assert all(bool((a == b).all()) for a, b in zip(found[0], others, strict=True))


@pytest.mark.parametrize("make", ALL)
def test_gradients_of_each_example_are_those_of_a_loop(make):
    network, xs = make(2, 3, bidirectional=True).double(), rg.randn(5, 4, 2, dtype=rg.float64)
    weights = dict(network.named_parameters())

    def loss(weights, x):
        return rg.func.functional_call(network, weights, (x,))[0].sin().sum()

    each = rg.vmap(rg.func.grad(loss), (None, 0))(weights, xs)
    for i, x in enumerate(xs):
        for name, g in rg.func.grad(loss)(weights, x).items():
            assert float((each[name][i] - g).abs().amax().detach()) < 1e-12


def test_networks_with_weights_of_their_own_map_over_them():
    networks, x = [nn.GRU(2, 3) for _ in range(3)], rg.randn(4, 5, 2)
    weights, _ = rg.func.stack_module_state(networks)
    out = rg.vmap(lambda weights: rg.func.functional_call(networks[0], weights, (x,))[0])(weights)
    for i, network in enumerate(networks):
        assert float((out[i] - network(x)[0]).abs().amax().detach()) < 1e-6


def test_tangents_of_a_network_are_those_of_differences():
    network, x = nn.LSTM(2, 3).double(), rg.randn(4, 5, 2, dtype=rg.float64)
    t = rg.randn(4, 5, 2, dtype=rg.float64)
    _, tangent = rg.func.jvp(lambda x: network(x)[0], (x,), (t,))
    with rg.no_grad():
        slope = (network(x + 1e-6 * t)[0] - network(x - 1e-6 * t)[0]) / 2e-6
    assert float((tangent - slope).abs().amax().detach()) < 1e-8


def test_a_network_under_autocast_computes_its_products_in_lower_precision():
    network, x = nn.LSTM(2, 3), rg.randn(4, 5, 2)
    with rg.autocast("cpu"):
        out = network(x)[0]
    assert "LstmLayer" not in str(out.grad_fn)
    assert 0 < float((out.float() - network(x)[0]).abs().amax().detach()) < 0.05


def test_states_that_are_written_to_later_leave_the_gradients():
    network, x = nn.GRU(2, 3).double(), rg.randn(4, 5, 2, dtype=rg.float64)
    expected = rg.autograd.grad(network(x)[0].sum(), list(network.parameters()))
    out = network(x)[0]
    loss = out.sum()
    with rg.no_grad():
        out.mul_(0)
    for g, e in zip(rg.autograd.grad(loss, list(network.parameters())), expected, strict=True):
        assert bool((g == e).all())


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


def test_dropout_of_a_single_layer_warns_that_nothing_is_dropped():
    with pytest.warns(UserWarning, match="num_layers greater than 1, but got dropout=0.5 and num_layers=1"):
        nn.GRU(3, 4, dropout=0.5)


@pytest.mark.parametrize(
    ("make", "error", "pattern"),
    [
        (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError, "'tanh' or 'relu', got 'x'"),
        (lambda: nn.RNNBase("x", 3, 4), ValueError, "mode must be one of RNN_TANH"),
        (lambda: nn.GRU(3, 0), ValueError, "hidden_size must be greater than zero: must be at least 1, got 0"),
        (lambda: nn.GRU(3, 4, dropout=2), ValueError, "got 2"),
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "less than hidden_size, 4.* got 4"),
        (lambda: nn.LSTM(3, 4)(rg.zeros(0, 2, 3)), RuntimeError, "no steps"),
        (lambda: nn.LSTM(3, 4)(rg.zeros(5, 2, 4)), RuntimeError, "input_size=3 features"),
        (lambda: nn.LSTM(3, 4)(rg.zeros(5)), ValueError, "2 or 3 dimensions"),
        (lambda: nn.GRU(3, 4)(rg.zeros(5, 2, 3), rg.zeros(1, 3, 4)), RuntimeError, r"h_0 of shape \(1, 2, 4\)"),
        (lambda: nn.GRUCell(3, 4)(rg.zeros(2, 2, 3)), ValueError, "1 or 2 dimensions"),
        (lambda: nn.GRUCell(3, 4)(rg.zeros(2, 5)), RuntimeError, "input_size=3"),
        (lambda: nn.GRUCell(3, 4)(rg.zeros(2, 3), rg.zeros(3, 4)), RuntimeError, r"state of shape \(2, 4\)"),
        (lambda: nn.GRUCell(3, -1), ValueError, "hidden_size"),
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


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_an_input_of_another_dtype_than_the_weights_is_refused_except_under_autocast(kind):
    layer = kind(3, 4).to(rg.bfloat16)
    x = rg.ones(2, 1, 3)
    with pytest.raises(ValueError, match=r"RNN input dtype \(float32\) does not match weight dtype \(bfloat16\)"):
        layer(x)
    with rg.autocast("cpu", dtype=rg.bfloat16):
        layer(x)
