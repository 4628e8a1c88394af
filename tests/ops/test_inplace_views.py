"""In-place view operators: effects on memory, graphs and other views, and refused calls."""

import optree
import pytest

import retrograd as rg


def test_the_tensor_stays_and_shows_the_same_memory():
    x = rg.arange(6).reshape(2, 3).clone()
    address = x.data_ptr()
    assert x.t_().unsqueeze_(0).squeeze_(0).transpose_(0, 1) is x
    assert (x.shape, x.data_ptr()) == ((2, 3), address)


def test_gradients_pass_through_and_reach_bases():
    w, base = rg.ones(2, 1, requires_grad=True), rg.zeros(3)
    view = base[1:]
    view.unsqueeze_(1)
    view.copy_(w * 3)
    y = w * rg.tensor([[1.0], [2.0]])
    y.squeeze_()
    ((base * rg.arange(3.0)).sum() + (y * y).sum()).backward()
    assert w.grad.tolist() == [[3 + 2], [6 + 8]]


def test_recorded_writes_to_older_views_reach_the_tensor():
    base, w = rg.zeros(3), rg.ones(2, requires_grad=True)
    view = base[1:]
    base.unsqueeze_(0)
    view.copy_(w * 3)
    assert base.tolist() == [[0.0, 3.0, 3.0]]
    (base * rg.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert w.grad.tolist() == [6.0, 12.0]


def test_older_views_follow_recorded_writes():
    w = rg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = w * 1
    row = y[0]
    y.t_()
    y.mul_(rg.tensor([[1.0, 10.0], [100.0, 1000.0]]))
    assert row.tolist() == [1.0, 200.0]
    row.sum().backward()
    assert w.grad.tolist() == [[1.0, 100.0], [0.0, 0.0]]


BECOME = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, -1),
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "squeeze_": lambda x: x.squeeze_(),
    "as_strided_": lambda x: x.as_strided_((3, 1), (1, 3)),
}


@pytest.mark.parametrize("become", BECOME.values(), ids=BECOME)
def test_the_gradient_has_the_shape_of_the_tensor_before_and_after(become):
    y = rg.ones(1, 3, requires_grad=True) * 1
    weights = become(rg.tensor([[2.0, 3.0, 5.0]]))
    y.retain_grad()
    (y * rg.tensor([[2.0, 3.0, 5.0]])).sum().backward(retain_graph=True)
    become(y)
    assert y.grad.tolist() == weights.tolist()
    (y * weights).sum().backward()
    assert y.grad.tolist() == (2 * weights).tolist()


def test_leaves_and_captured_tensors_are_refused():
    w = rg.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        w.unsqueeze_(0)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        w[:2].unsqueeze_(0)
    captured = rg.ones(3)
    for transform in (rg.vmap, rg.func.grad):
        with pytest.raises(RuntimeError, match=r"unsqueeze_: .* mutate a captured Tensor"):
            transform(lambda x: (captured.unsqueeze_(0) * x).sum())(rg.ones(2, 3))
    assert (w.shape, captured.shape) == ((3,), (3,))


STEPS = [
    lambda x, end: getattr(x, f"squeeze{end}")(0),
    lambda x, end: getattr(x, f"unsqueeze{end}")(-1),
    lambda x, end: getattr(x, f"transpose{end}")(0, 2),
    lambda x, end: getattr(getattr(x, f"squeeze{end}")(), f"t{end}")(),
    lambda x, end: getattr(x, f"as_strided{end}")((2, 2), (1, 3)),
]


@pytest.mark.parametrize("step", STEPS)
def test_transforms_agree_with_views_out_of_place(step):
    x = rg.arange(12.0, dtype=rg.float64).reshape(2, 1, 2, 3)

    def program(end):
        def run(v):
            y = v * v
            older, flat = y[..., :2], y.reshape(-1)
            z = step(y, end)
            z.mul_(3)
            older.add_(1)
            return z * z, older + 0, flat * 2

        return run

    in_place, expected = program("_"), program("")

    def loss(run):
        return lambda v: sum(((part + 1) * part).sum() for part in run(v))

    t = rg.cos(x)
    for found, right in [
        (rg.vmap(in_place)(x), rg.vmap(expected)(x)),
        (rg.vmap(rg.func.grad(loss(in_place)))(x), rg.vmap(rg.func.grad(loss(expected)))(x)),
        (rg.func.jvp(in_place, (x[0],), (t[0],)), rg.func.jvp(expected, (x[0],), (t[0],))),
        (rg.func.functionalize(in_place)(x[0]), expected(x[0])),
        (rg.vmap(in_place)(x), tuple(map(rg.stack, zip(*[expected(v) for v in x], strict=True)))),
    ]:
        assert optree.tree_map(rg.Tensor.tolist, found) == optree.tree_map(rg.Tensor.tolist, right)


@pytest.mark.parametrize("mode", [rg.no_grad, rg.inference_mode])
def test_where_nothing_is_recorded_the_history_follows_all_the_same(mode):
    w = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y, z = w * rg.tensor([2.0, 3.0, 4.0]), (w * 5).view(3)
    with mode():
        y.unsqueeze_(1)
        z.unsqueeze_(0)
    assert (y.shape, z.shape, y.requires_grad, z.requires_grad) == ((3, 1), (1, 3), True, True)
    (y * z).sum().backward()
    expected = [(a * b).item() for a, b in zip(rg.tensor([2.0, 3.0, 4.0]), 5 * (rg.ones(3) * 6), strict=True)]
    by_z = 5 * 20.0  # the sum of y
    assert w.grad.tolist() == [e + by_z for e in expected]


def test_a_leaf_becomes_a_view_where_nothing_is_recorded():
    w = rg.ones(3, 1, requires_grad=True)
    with rg.no_grad():
        w.t_()
    (w * rg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert (w.shape, w.is_leaf, w.grad.tolist()) == ((1, 3), True, [[1.0, 2.0, 3.0]])


def test_a_saved_value_is_noticed():
    x, w = rg.ones(3), rg.ones(3, requires_grad=True)
    y = (x * w).sum()
    x.unsqueeze_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_tensor_without_a_base_keeps_its_hooks_after_it_became_a_view_in_place():
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    for to_view in (lambda x: x.t_(), lambda x: x.squeeze_(0), lambda x: x.unsqueeze_(0), lambda x: x.transpose_(0, 1)):
        x = to_view(rg.ones(1, 2))
        assert x._base is None
        x.mul_(w.sum())
        seen = []
        x.register_hook(seen.append)
        x.mul_(2)
        x.sum().backward()
        assert [g.flatten().tolist() for g in seen] == [[2.0, 2.0]]


def test_an_older_view_of_a_tensor_that_became_a_view_in_place_follows_its_writes():
    w = rg.tensor(3.0, requires_grad=True)
    x = rg.arange(6.0).reshape(2, 3).clone()
    row = x[1]
    x.t_().unsqueeze_(0).squeeze_()
    assert row._base is x
    x[2, 1] = w * 2
    assert row.tolist() == [3.0, 4.0, 6.0]
    row.sum().backward()
    assert w.grad.item() == 2.0


def test_a_view_of_an_older_view_follows_a_tensor_that_became_a_view_in_place():
    w = rg.tensor(3.0, requires_grad=True)
    x = w * rg.ones(1, 2)
    older = x.t()
    x.squeeze_()
    older[0, 0:1] = 2.0
    assert x.tolist() == [2.0, 3.0]
    x.sum().backward()
    assert w.grad.item() == 1.0


def test_an_older_view_is_refused_by_name_after_data_was_assigned_to_a_tensor_that_became_a_view_in_place():
    w = rg.tensor(2.0, requires_grad=True)
    x = rg.ones(1, 2)
    oldest = x[0]
    x.t_()
    older = x[0]
    x.data = rg.ones(2, 1)
    for view in (oldest, older):
        with pytest.raises(RuntimeError, match="or data was assigned to it, so that they no longer share memory"):
            view.mul_(w)
