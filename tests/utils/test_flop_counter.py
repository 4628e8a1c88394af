"""`FlopCounterMode` counts products, convolutions and attention, by module and operator, backward passes included."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.utils.flop_counter import FlopCounterMode, register_flop_formula


def count(function, **options):
    with FlopCounterMode(display=False, **options) as mode:
        function()
    return mode


@pytest.mark.parametrize(
    ("function", "flops"),
    [
        (lambda: rg.ones(2, 3) @ rg.ones(3, 4), 48),
        (lambda: rg.ones(3) @ rg.ones(3), 6),
        (lambda: rg.bmm(rg.ones(5, 2, 3), rg.ones(5, 3, 4)), 240),
        (lambda: rg.einsum("bij,bjk->ik", rg.ones(5, 2, 3), rg.ones(5, 3, 4)), 240),
        (lambda: nn.functional.conv1d(rg.ones(2, 4, 9), rg.ones(6, 2, 3), groups=2), 2 * 2 * 6 * 7 * 2 * 3),
        (lambda: nn.functional.scaled_dot_product_attention(*[rg.ones(2, 5, 4)] * 3), 2 * 2 * 5 * 5 * 8),
        (lambda: rg.ones(100).exp().sum(), 0),
    ],
)
def test_a_product_counts_a_multiplication_and_an_addition_for_each_term(function, flops):
    assert count(function).get_total_flops() == flops


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_layers_over_steps_count_their_products(kind):
    layer = kind(3, 4)
    x = rg.ones(5, 2, 3, requires_grad=True)
    rows, inputs, hidden = 10, layer.weight_ih_l0.numel(), layer.weight_hh_l0.numel()
    forward = count(lambda: layer(x)).get_total_flops()
    assert forward == 2 * rows * (inputs + hidden)
    assert count(lambda: layer(x)[0].sum().backward()).get_total_flops() == 3 * forward


def test_counts_are_given_by_module_also_in_backward_passes():
    model = nn.Sequential(nn.Linear(10, 20), nn.Sequential(nn.ReLU(), nn.Linear(20, 5)))
    x = rg.ones(8, 10, requires_grad=True)
    found = count(lambda: model(x).sum().backward()).get_flop_counts()
    totals = {name: sum(counts.values()) for name, counts in found.items()}
    assert totals == {
        "Global": 3 * 4800, "Sequential": 3 * 4800, "Sequential.0": 3 * 3200, "Sequential.1": 3 * 1600,
        "Sequential.1.1": 3 * 1600,
    }  # fmt: skip


def test_nothing_is_counted_or_hooked_after_the_block_or_an_error_in_it():
    model = nn.Linear(2, 2)
    mode = FlopCounterMode(display=False)

    def fail():
        with mode:
            model(rg.ones(1, 2))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    model(rg.ones(1, 2)).sum().backward()
    assert mode.get_total_flops() == 8
    with mode:
        model(rg.ones(3, 2))
    assert mode.get_total_flops() == 24  # that of the last block


def test_the_table_has_modules_to_the_depth(capsys):
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))
    with FlopCounterMode(depth=1) as mode:
        model(rg.ones(500, 2))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["Module", "FLOPs", "share"], ["Global", "4K", "100.00%"], ["Sequential", "4K", "100.00%"],
    ]  # fmt: skip
    assert len(mode.get_table(3).splitlines()) == 5
    assert FlopCounterMode().get_table().splitlines()[1].split() == ["Global", "0", "0%"]


def test_formulas_can_be_given_for_a_mode_and_must_be_of_operators():
    def raw(x, *, out_val):
        return x.numel() + out_val.numel()

    raw._get_raw = True
    formulas = {rg.exp: raw, rg.matmul: lambda a, b, *, out_shape: len(a)}
    found = count(lambda: rg.ones(3).exp() @ rg.ones(3), custom_mapping=formulas)
    assert found.get_total_flops() == 6 + 1
    assert count(lambda: rg.ones(3).exp()).get_total_flops() == 0
    with pytest.raises(ValueError, match="expected operators"):
        register_flop_formula(len)
