"""Training utilities, and initialization."""

import copy

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.utils import parameters_to_vector, parametrizations, parametrize, rnn, vector_to_parameters


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2


class Halved(nn.Module):
    """Double the weight; the inverse halves it."""

    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


class Wider(nn.Module):
    def forward(self, x):
        return rg.cat([x, x])


def test_parameters_go_into_a_vector_and_back():
    layer = nn.Linear(3, 2)
    vector = parameters_to_vector(layer.parameters())
    assert vector.tolist() == [*layer.weight.flatten().tolist(), *layer.bias.tolist()]
    vector_to_parameters(rg.arange(8.0), layer.parameters())
    assert layer.weight.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert layer.bias.tolist() == [6, 7]
    with pytest.raises(ValueError, match=r"8 elements, the vector has shape \(7,\)"):
        vector_to_parameters(rg.zeros(7), layer.parameters())
    assert layer.bias.tolist() == [6, 7]


def test_a_parametrized_tensor_is_computed_of_its_original_and_passes_gradients():
    layer = nn.Linear(2, 1, bias=False)
    before = layer.weight.tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == [[2 * value for value in before[0]]]
    layer(rg.ones(2)).sum().backward()
    assert layer.parametrizations.weight.original.grad.tolist() == [[2.0, 2.0]]
    assert isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear


def test_parametrizations_that_can_be_undone_keep_the_tensor_and_take_values():
    layer = nn.Linear(2, 1)
    before = layer.weight.tolist()
    for _ in range(2):
        parametrize.register_parametrization(layer, "weight", Halved())
        assert layer.weight.tolist() == before
    layer.weight = rg.tensor([[4.0, 8.0]])
    assert layer.parametrizations.weight.original.tolist() == [[1.0, 2.0]]
    copied = copy.deepcopy(layer)
    layer.weight = rg.zeros(1, 2)
    assert copied.weight.tolist() == [[4.0, 8.0]]
    with pytest.raises(RuntimeError, match="Doubled has no right_inverse"):
        parametrize.register_parametrization(nn.Linear(2, 1), "weight", Doubled()).weight = rg.zeros(1, 2)


class Inverted(nn.Module):
    """A parametrization whose `right_inverse` is a given function."""

    def __init__(self, inverse):
        super().__init__()
        self.right_inverse = inverse

    def forward(self, x):
        return x * 1.0


@pytest.mark.parametrize(
    ("inverse", "message", "first"),
    [
        (lambda x: x.double(), "keep the dtype", True),
        (lambda x: x.to("meta"), "keep the device", True),
        (lambda x: None, "must return a Tensor or a Sequence", True),
        (lambda x: x.double(), "keep the dtype", False),
        (lambda x: x[:1], "keep the shape", False),
        (lambda x: (x, x), "must return a tensor", False),
    ],
)
def test_inverses_that_make_other_originals_are_refused_before_anything_changes(inverse, message, first):
    layer = nn.Linear(2, 3)
    if not first:
        parametrize.register_parametrization(layer, "weight", Halved())
    before = layer.weight.tolist()
    with pytest.raises(ValueError, match=message):
        parametrize.register_parametrization(layer, "weight", Inverted(inverse))
    assert parametrize.is_parametrized(layer) is not first
    assert layer.weight.tolist() == before


def test_a_parametrization_takes_over_the_mode_of_its_module():
    layer = nn.Linear(2, 1).eval()
    parametrize.register_parametrization(layer, "weight", Halved())
    layer.train()
    parametrize.register_parametrization(layer, "weight", Halved().eval())
    assert [part.training for part in layer.parametrizations.weight] == [True, True]
    eval_only = parametrize.register_parametrization(nn.Linear(2, 1).eval(), "weight", Halved())
    assert not eval_only.parametrizations.weight[0].training


def test_removing_a_parametrization_leaves_the_value_or_the_original():
    for leave, expected in ((True, [[2.0, 2.0]]), (False, [[1.0, 1.0]])):
        layer = nn.Linear(2, 1)
        nn.init.ones_(layer.weight)
        parametrize.register_parametrization(layer, "weight", Doubled())
        parametrize.remove_parametrizations(layer, "weight", leave)
        assert layer.weight.tolist() == expected
        assert isinstance(layer.weight, nn.Parameter)
        assert type(layer) is nn.Linear
        assert not parametrize.is_parametrized(layer)


def test_a_cached_tensor_is_computed_once():
    layer = parametrize.register_parametrization(nn.Linear(2, 1), "weight", Doubled())
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight


def test_a_recurrent_network_can_be_parametrized():
    network = parametrizations.weight_norm(nn.LSTM(2, 3), "weight_hh_l0")
    out, _ = network(rg.randn(4, 1, 2))
    out.sum().backward()
    assert network.parametrizations.weight_hh_l0.original1.grad is not None


def test_the_spectral_norm_changes_its_estimate_in_training_only():
    layer = parametrizations.spectral_norm(nn.Linear(3, 3))
    layer.eval()
    assert layer.weight.tolist() == layer.weight.tolist()


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
def test_an_orthogonal_weight_stays_so_while_it_is_trained(kind, shape):
    layer = parametrizations.orthogonal(nn.Linear(*shape, bias=False), orthogonal_map=kind)
    optimizer = rg.optim.SGD(layer.parameters(), lr=0.1)
    first = layer.weight.detach()
    layer(rg.randn(4, shape[0])).sum().backward()
    optimizer.step()
    w = layer.weight.detach()
    product = w @ w.mT if shape[1] <= shape[0] else w.mT @ w
    assert float((product - rg.eye(min(shape))).abs().amax()) < 1e-5
    if shape[1] != shape[0] or kind != "householder":
        assert w.tolist() != first.tolist()


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2)])
def test_an_orthogonal_weight_without_a_base_can_be_assigned_if_it_is_made_of_reflections(shape):
    layer = parametrizations.orthogonal(nn.Linear(*shape), "weight", "householder", use_trivialization=False)
    wanted = nn.init.orthogonal_(rg.empty(shape[1], shape[0]))
    layer.weight = wanted
    rg.testing.assert_close(layer.weight, wanted, rtol=0, atol=1e-5)
    other = parametrizations.orthogonal(nn.Linear(*shape), "weight", "cayley", use_trivialization=False)
    with pytest.raises(NotImplementedError, match=r"'cayley'; assign to its parametrizations\.weight\.original"):
        other.weight = wanted


@pytest.mark.parametrize(
    ("make", "error", "pattern"),
    [
        (lambda: parametrize.register_parametrization(nn.Linear(1, 1), "no", Doubled()), ValueError, "no tensor 'no'"),
        (lambda: parametrize.register_parametrization(nn.Linear(1, 1), "weight", Wider()), ValueError, "unsafe=True"),
        (lambda: parametrize.remove_parametrizations(nn.Linear(1, 1), "weight"), ValueError, "no parametrized"),
        (lambda: parametrizations.orthogonal(nn.Linear(1, 1), "bias"), ValueError, "expected a matrix"),
        (lambda: parametrizations.orthogonal(nn.Linear(1, 1), orthogonal_map="x"), ValueError, "got 'x'"),
        (lambda: parametrizations.spectral_norm(nn.Linear(1, 1), n_power_iterations=0), ValueError, "at least 1"),
        (lambda: parametrizations.weight_norm(nn.Linear(1, 1), "no"), ValueError, "no tensor 'no'"),
        (lambda: parameters_to_vector([]), ValueError, "at least one"),
        (lambda: rnn.pad_sequence([]), ValueError, "at least one sequence"),
        (lambda: rnn.pad_sequence([rg.ones(1)], padding_side="up"), ValueError, "'right' or 'left', got 'up'"),
        (lambda: rnn.pack_padded_sequence(rg.ones(3, 2), [2, 3]), RuntimeError, r"got \[2, 3\]; sort the sequences"),
        (lambda: rnn.pack_padded_sequence(rg.ones(3, 2), [3, 0]), RuntimeError, "between 1 and the 3 steps"),
        (lambda: rnn.pack_padded_sequence(rg.ones(3, 2), [4, 1]), RuntimeError, "between 1 and the 3 steps"),
        (lambda: rnn.pack_padded_sequence(rg.ones(3, 2), [3]), RuntimeError, "1 lengths for 2 sequences"),
        (
            lambda: rnn.pad_packed_sequence(rnn.pack_sequence([rg.ones(3)]), total_length=2),
            ValueError,
            "total_length is 2, but the longest has 3",
        ),
        (lambda: nn.init.eye_(rg.ones(2)), ValueError, "eye_: expected a tensor of 2 dimensions"),
        (lambda: nn.init.dirac_(rg.ones(2, 2)), ValueError, "3 or 4 or 5 dimensions"),
        (lambda: nn.init.dirac_(rg.ones(3, 2, 2), groups=2), ValueError, "3 outputs can't be divided into 2"),
        (lambda: nn.init.orthogonal_(rg.ones(2)), ValueError, "at least 2 dimensions"),
        (lambda: nn.init.sparse_(rg.ones(2, 2), 1.5), ValueError, "between 0 and 1, got 1.5"),
    ],
)
def test_calls_that_can_not_be_done_are_refused_by_name(make, error, pattern):
    with pytest.raises(error, match=pattern):
        make()
