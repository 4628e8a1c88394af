"""A step of many small parameters at once leaves the bits, states and memory of steps one by one."""

import copy

import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.optim import foreach

from ..case_groups import group_cases

SETTINGS = [
    (optim.SGD, {}),
    (optim.SGD, {"weight_decay": 0.1, "maximize": True}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (optim.SGD, {"momentum": 0.9, "dampening": 0.3}),
    (optim.Adam, {"weight_decay": 0.1}),
    (optim.Adam, {"amsgrad": True}),
    (optim.AdamW, {}),
    (optim.NAdam, {}),
    (optim.RAdam, {"decoupled_weight_decay": True}),
    (optim.Adamax, {}),
    (optim.Adagrad, {"lr_decay": 0.1}),
    (optim.Adadelta, {}),
    (optim.RMSprop, {"centered": True, "momentum": 0.5}),
    (optim.ASGD, {"t0": 2}),
    (optim.Rprop, {}),
    (optim.Lion, {}),
]
SHAPES = [(3, 5), (), (7,), (0, 2), (64, 65), (2, 1, 3), (1,), (100, 100)]


def parameters(seed=0):
    """Return parameters of several sizes and dtypes, one of them a view and one not in row-major order."""
    source = rg.Generator().manual_seed(seed)
    made = [rg.randn(*shape, generator=source).to(dtype) for shape in SHAPES for dtype in (rg.float32, rg.float64)]
    made += [rg.randn(4, 6, generator=source)[1], rg.randn(4, 6, generator=source).t()]
    return [p.detach().requires_grad_() for p in made]


def set_gradients(params, number):
    source = rg.Generator().manual_seed(number)
    for i, p in enumerate(params):
        g = rg.randn(*p.shape, generator=source).to(p.dtype) * 10.0 ** (number - 2)
        p.grad = None if (i + number) % 5 == 0 else g  # so that they have taken different numbers of steps
    params[4].grad = rg.ones(1, dtype=params[4].dtype).expand(7)


def trained(make, settings, together, steps=5):
    params = parameters()
    optimizer = make(params, lr=0.01, **settings)
    for number in range(steps):
        set_gradients(params, number)
        if not together:
            optimizer.update = type(optimizer).update.__get__(optimizer)  # the same, of which no class says anything
            optimizer.update = lambda *args, update=optimizer.update: update(*args)
        optimizer.step()
    return params, optimizer


@group_cases
@pytest.mark.parametrize(("make", "settings"), SETTINGS)
def test_parameters_that_step_together_have_the_bits_of_those_that_step_alone(make, settings, monkeypatch):
    batches = []
    monkeypatch.setattr(
        optim.optimizer, "update_batch", lambda *args: batches.append(args) or foreach.update_batch(*args)
    )
    params, optimizer = trained(make, settings, together=True)
    assert {len(batch[1][0]) > 1 for batch in batches} == {True}
    count = len(batches)
    others, other = trained(make, settings, together=False)
    assert len(batches) == count
    for p, q in zip(params, others, strict=True):
        rg.testing.assert_close(p, q, rtol=0, atol=0, equal_nan=True)
        mine, its = optimizer.state.get(p, {}), other.state.get(q, {})
        assert list(mine) == list(its)
        for name, value in mine.items():
            if isinstance(value, rg.Tensor):
                rg.testing.assert_close(value, its[name], rtol=0, atol=0)
            else:
                assert value == its[name]


@group_cases
@pytest.mark.parametrize(("make", "settings"), SETTINGS)
def test_a_joint_step_writes_to_the_memory_of_each_parameter_and_counts_the_write(make, settings):
    params = parameters()
    optimizer = make(params, lr=0.01, **settings)
    set_gradients(params, 1)
    stepping = [p for p in params if p.grad is not None]
    addresses, versions = [p.data_ptr() for p in stepping], [p._version for p in stepping]
    optimizer.step()
    assert [p.data_ptr() for p in stepping] == addresses
    assert all(p._version > version for p, version in zip(stepping, versions, strict=True))
    owned = [t for p in stepping for t in optimizer.state[p].values() if isinstance(t, rg.Tensor) and t.numel()]
    assert len({t.data_ptr() for t in owned}) == len(owned)
    copy.deepcopy(optimizer.state_dict())


def batches_of(params, **settings):
    optimizer = optim.SGD(params, lr=0.1, **settings)
    with rg.no_grad():
        return [len(batch[0]) for batch in foreach.split_batches(optimizer, optimizer.param_groups[0])[0]]


def with_gradients(params):
    for p in params:
        p.grad = rg.ones(*p.shape, dtype=p.dtype)
    return params


def test_parameters_that_share_memory_step_one_after_the_other():
    base = rg.ones(4).numpy()
    shared = with_gradients([rg.from_numpy(base).requires_grad_(), rg.from_numpy(base[1:]).requires_grad_()])
    assert batches_of(shared) == []
    apart = with_gradients([rg.from_numpy(base[:2]).requires_grad_(), rg.from_numpy(base[2:]).requires_grad_()])
    assert batches_of(apart) == [2]
    apart[0].grad = apart[1].detach()
    assert batches_of(apart) == []
    optim.SGD(shared, lr=1.0).step()
    assert base.tolist() == [0.0, -1.0, -1.0, -1.0]


def test_what_may_not_step_together_steps_alone():
    def two():
        return with_gradients([rg.ones(3, requires_grad=True) for _ in range(2)])

    assert batches_of(two()) == [2]
    assert batches_of(two(), foreach=False) == []
    sparse = two()
    sparse[0].grad = rg.sparse_coo_tensor(rg.tensor([[1]]), rg.tensor([1.0]), (3,))
    assert batches_of(sparse) == []
    assert batches_of(with_gradients([rg.ones(3, dtype=rg.bfloat16, requires_grad=True) for _ in range(2)])) == []

    class Halved(optim.SGD):
        def update(self, param, grad, state, group):
            param.sub_(grad.mean() * group["lr"])

    params = two()
    Halved(params, lr=0.5).step()
    assert [p.tolist() for p in params] == [[0.5] * 3] * 2


def test_a_large_group_is_cut_into_buffers():
    params = with_gradients([rg.ones(foreach.MOST_ELEMENTS, requires_grad=True) for _ in range(40)])
    assert batches_of(params) == [16, 16, 8]


def test_a_write_that_a_graph_depends_on_is_noticed_after_a_joint_step():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    loss = model(rg.ones(1, 2)).sum()
    loss.backward(retain_graph=True)
    optim.SGD(model.parameters(), lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_joint_step_in_a_profile_or_a_transform_is_that_of_single_parameters():
    params = with_gradients([rg.ones(3, requires_grad=True) for _ in range(2)])
    with rg.autograd.profiler.profile():
        assert batches_of(params) == []
