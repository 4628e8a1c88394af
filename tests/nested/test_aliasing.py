"""Aliasing law: a view in PyTorch shares memory with its base here, or is regenerated from it and refuses writes."""

import warnings

import pytest

import retrograd as rg
from retrograd.core import Tensor
from retrograd.nested import nested_tensor, nested_tensor_from_jagged
from retrograd.ops.batch_loop import PerformanceWarning

from ..case_groups import group_cases


def rows(*shapes):
    return [rg.arange(float(rg.Size(s).numel())).reshape(s) + 10.0 * i + 1.0 for i, s in enumerate(shapes)]


KINDS = {
    "jagged": lambda: nested_tensor(rows((2, 3), (1, 3))),
    "flat": lambda: nested_tensor(rows((2,), (1,), (0,))),
    "holes": lambda: nested_tensor_from_jagged(rg.arange(21.0).reshape(7, 3) + 1, [0, 3, 7], lengths=[2, 3]),
    "several": lambda: nested_tensor(rows((2, 3), (1, 4))),
    "several inside": lambda: nested_tensor(rows((2, 2, 3, 2), (2, 1, 4, 2))),
    "sets": lambda: nested_tensor([nested_tensor(rows((2,), (1,))), nested_tensor(rows((3,)))]),
    "none": lambda: nested_tensor([]),
    "numbers": lambda: nested_tensor([1.0, 2.0]),
    "alike": lambda: nested_tensor(rows((2, 3), (2, 3))),
    "single": lambda: nested_tensor(rows((1, 3), (1, 3))),
    "transposed": lambda: nested_tensor(rows((2, 3), (1, 3))).transpose(1, 2),
    "moved": lambda: nested_tensor(rows((2, 3, 2), (2, 1, 2))).permute(0, 3, 1, 2),
    "complex": lambda: nested_tensor([rg.tensor([[1 + 2j, 2j]]), rg.tensor([[1j, 3.0], [2.0, 5.0]])]),
}

# Those that PyTorch documents as views.  `reshape`, `flatten`, `contiguous` and `to` may copy there too.
VIEWS = {
    "x[0]": lambda x: x[0],
    "x[-1:]": lambda x: x[-1:],
    "x[::2]": lambda x: x[::2],
    "x[:, 0]": lambda x: x[:, 0],
    "x[:, -1:]": lambda x: x[:, -1:],
    "x[:, ::2]": lambda x: x[:, ::2],
    "x[:, 1:]": lambda x: x[:, 1:],
    "x[..., 0]": lambda x: x[..., 0],
    "x[..., 1:]": lambda x: x[..., 1:],
    "x[..., None]": lambda x: x[..., None],
    "x[:, None]": lambda x: x[:, None],
    "x[0, 0]": lambda x: x[0, 0],
    "x[:, :, 0]": lambda x: x[:, :, 0],
    "x[:, :, 1:]": lambda x: x[:, :, 1:],
    "x[:, 0, 1:]": lambda x: x[:, 0, 1:],
    "select 0": lambda x: x.select(0, 1),
    "select 1": lambda x: x.select(1, 0),
    "select -1": lambda x: x.select(-1, 0),
    "narrow 0": lambda x: x.narrow(0, 0, 1),
    "narrow 1": lambda x: x.narrow(1, 0, 1),
    "narrow -1": lambda x: x.narrow(-1, 0, 2),
    "nested.narrow": lambda x: rg.nested.narrow(x, 1, 0, 1),
    "transpose 0 1": lambda x: x.transpose(0, 1),
    "transpose 1 2": lambda x: x.transpose(1, 2),
    "transpose -2 -1": lambda x: x.transpose(-2, -1),
    "mT": lambda x: x.mT,
    "mH": lambda x: x.mH,
    "t": lambda x: x.t(),
    "T": lambda x: x.T,
    "swapaxes": lambda x: x.swapaxes(1, -1),
    "permute": lambda x: x.permute(0, *range(x.ndim - 1, 0, -1)),
    "movedim": lambda x: x.movedim(-1, 1),
    "squeeze": lambda x: x.squeeze(),
    "squeeze 1": lambda x: x.squeeze(1),
    "unsqueeze 0": lambda x: x.unsqueeze(0),
    "unsqueeze 1": lambda x: x.unsqueeze(1),
    "unsqueeze -1": lambda x: x.unsqueeze(-1),
    "unflatten": lambda x: x.unflatten(-1, (-1, 1)),
    "unflatten ragged": lambda x: x.unflatten(1, (1, -1)),
    "expand": lambda x: x.expand(*x.shape),
    "expand more": lambda x: x.unsqueeze(-1).expand(*x.shape, 2),
    "expand_as": lambda x: x.expand_as(x),
    "broadcast_to": lambda x: x.broadcast_to(x.shape),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "diagonal -2 -1": lambda x: x.diagonal(0, -2, -1),
    "unfold": lambda x: x.unfold(-1, 2, 1),
    "unfold 1": lambda x: x.unfold(1, 1, 1),
    "view": lambda x: x.view(*x.shape, 1),
    "view flat": lambda x: x.view(-1),
    "view_as": lambda x: x.view_as(x),
    "view dtype": lambda x: x.view(rg.int32),
    "view_as_real": rg.view_as_real,
    "view_as_complex": rg.view_as_complex,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "conj": lambda x: x.conj(),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "values": lambda x: x.values(),
    "unbind": lambda x: x.unbind(),
    "unbind 1": lambda x: x.unbind(1),
    "unbind -1": lambda x: x.unbind(-1),
    "iter": lambda x: tuple(x),
    "chunk": lambda x: x.chunk(2),
    "chunk 1": lambda x: x.chunk(2, 1),
    "chunk -1": lambda x: x.chunk(2, -1),
    "split": lambda x: x.split(1),
    "split 1": lambda x: x.split(1, 1),
    "split -1": lambda x: x.split([1, 2], -1),
    "split_with_sizes": lambda x: x.split_with_sizes([1, 1]),
    "tensor_split": lambda x: x.tensor_split(2),
    "tensor_split -1": lambda x: x.tensor_split(2, -1),
    "hsplit": lambda x: x.hsplit(2),
    "positive": lambda x: x.positive(),
    "twice": lambda x: x[:, 0][:1],
    "of a copy": lambda x: x[:, ::2].unsqueeze(-1),
    "detached copy": lambda x: x[:, 0].detach(),
}


UNRECORDED = ("detach", "data", "detached copy")  # a write to them changes values, and no graph


def leaves(found) -> list[Tensor]:
    return [found] if isinstance(found, Tensor) else [leaf for member in found for leaf in leaves(member)]


def known(found) -> list:
    return [leaf.tolist() for leaf in leaves(found)]


def view_of(name, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PerformanceWarning)
        return VIEWS[name](x)


def viewed(kind, name):
    """Return a base and the result of a view operator; None if it is refused for this kind."""
    x = KINDS[kind]()
    try:
        return x, view_of(name, x)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return None


CASES = [(kind, name) for kind in KINDS for name in VIEWS if viewed(kind, name) is not None]


def refuses(write) -> bool:
    try:
        write()
    except RuntimeError as error:
        return any(word in str(error) for word in ("which the write would not reach", "read-only", "view"))
    return False


@group_cases
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_write_to_a_view_reaches_its_base_or_is_refused(kind, name):
    x, views = viewed(kind, name)
    for number, view in enumerate(leaves(views)):
        before = x.tolist()
        if refuses(lambda view=view: view.mul_(2)):
            assert x.tolist() == before
        else:
            assert known(view_of(name, x)) == known(views)
            assert (x.tolist() != before) == bool(view.numel()), number


@group_cases
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_view_follows_writes_to_its_base(kind, name):
    x, views = viewed(kind, name)
    x.mul_(2)
    assert known(leaf.clone() for leaf in leaves(views)) == known(view_of(name, x))
    assert known(views) == known(view_of(name, x))
    if kind != "none":
        x.values().mul_(2)
        assert known(views) == known(view_of(name, x))


@group_cases
@pytest.mark.parametrize(("kind", "name"), [case for case in CASES if case[0] != "complex"])
def test_gradients_know_of_writes_to_views(kind, name):
    plain, _ = viewed(kind, name)
    ones = rg.ones_like(plain)
    leaf = plain.clone().requires_grad_()
    base = leaf * 1
    view = (leaves(view_of(name, base)) or [base])[0]
    if view is base or not view.is_floating_point() or refuses(lambda: view.mul_(3)):
        return
    first = leaves(view_of(name, ones))[0]
    first.mul_(3)
    weights = ones if name in UNRECORDED else rg.ones_like(ones)
    (base * weights).sum().backward()
    assert leaf.grad.tolist() == ones.tolist()
    assert (leaf.grad * plain).tolist() == base.tolist()


@pytest.mark.parametrize("write", [lambda v: v.zero_(), lambda v: v.__setitem__(0, 1.0), lambda v: v.copy_(v + 1)])
@pytest.mark.parametrize("transform", [lambda f: f(), lambda f: rg.func.grad(lambda s: f() + s)(rg.tensor(1.0))])
def test_every_way_to_write_to_a_copy_is_refused(write, transform):
    def f():
        x = KINDS["jagged"]().clone()
        write(x[:, 0])
        return x.sum()

    with pytest.raises(RuntimeError, match=r"a view in PyTorch, but here a copy, made by slice, of elements of"):
        transform(f)


def test_a_gradient_that_a_copy_holds_may_be_written_to():
    x = nested_tensor(rows((2, 3), (1, 4))).requires_grad_()
    (found,) = rg.autograd.grad(x.transpose(1, 2), x, x.detach().transpose(1, 2))
    found.mul_(2)
    assert found.tolist() == (x.detach() * 2).tolist()
    x.transpose(1, 2).backward(x.detach().transpose(1, 2))
    x.grad.zero_()
    x[:, 0].sum().backward()
    x[:, 0].sum().backward()
    assert x.grad.tolist() == [[[2.0] * 3, [0.0] * 3], [[2.0] * 4]]


def test_the_gradient_of_a_copy_that_was_saved_before_its_base_changed_is_refused():
    x = nested_tensor(rows((2, 3), (1, 3)))
    w = rg.ones(3, requires_grad=True)
    out = (x[:, 0] * w).sum()
    x.zero_()
    with pytest.raises(RuntimeError, match=r"modified|changed|written"):
        out.backward()
