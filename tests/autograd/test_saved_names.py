"""Nodes show what they saved under PyTorch's names: `_saved_self`, `_saved_other`, `_saved_result`, params."""

import pytest

import retrograd as rg


def leaf():
    return rg.tensor([1.0, 2.0], requires_grad=True)


def test_saved_inputs_have_the_names_of_pytorch():
    x, y = leaf(), rg.tensor([3.0, 4.0], requires_grad=True)
    node = (x * y).grad_fn
    assert node._saved_self is x
    assert node._saved_other is y


def test_a_saved_result_belongs_to_its_node():
    y = leaf().exp()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn


def test_params_and_unsaved_inputs():
    x = leaf()
    assert x.softmax(0).grad_fn._saved_dim == 0
    assert (x * 2).grad_fn._saved_self is None


def test_freed_values_and_unknown_names_are_refused():
    y = leaf().exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        y.grad_fn._saved_result  # noqa: B018
    with pytest.raises(AttributeError, match="saves no '_saved_mat2'"):
        leaf().exp().grad_fn._saved_mat2  # noqa: B018
    with pytest.raises(AttributeError, match="saves nothing"):
        (leaf() + leaf()).grad_fn._saved_self  # noqa: B018


def test_hooks_of_one_saved_tensor_replace_it():
    x, y = leaf(), leaf()
    (x * y).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)  # of another node
    z = x * y
    z.grad_fn._raw_saved_other.register_hooks(lambda t: (t * 3).tolist(), rg.tensor)
    assert z.grad_fn._saved_other.tolist() == (y * 3).tolist()
    z.sum().backward()
    assert x.grad.tolist() == (y * 3).tolist()
    assert y.grad.tolist() == x.tolist()


def test_hooks_of_a_saved_result_and_of_one_of_several():
    x = leaf()
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t * 4, lambda t: t / 2)
    assert y.grad_fn._saved_result.tolist() == (y * 2).tolist()
    (first,) = rg.autograd.grad(y.sum(), x, create_graph=True)
    assert first.tolist() == (y * 2).tolist()
    read = []
    q, r = rg.linalg.qr(rg.eye(2, requires_grad=True))
    saved_q, saved_r = q.grad_fn._raw_saved_result
    saved_r.register_hooks(lambda t: t.tolist(), lambda packed: read.append(packed) or rg.tensor(packed))
    saved_q.register_hooks(lambda t: t, lambda t: t)
    (q + r).sum().backward()
    assert read
    assert all(packed == r.tolist() for packed in read)


def test_hooks_of_one_saved_tensor_are_refused_where_they_have_no_effect():
    node = (leaf() * leaf()).grad_fn
    saved = node._raw_saved_self
    with pytest.raises(TypeError, match="incompatible function arguments: pack_hook"):
        saved.register_hooks(1, print)
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        saved.register_hooks(lambda t: t.add_(1), print)
    saved = (leaf() * leaf()).grad_fn._raw_saved_self
    saved.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        saved.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        (leaf() + 1).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y = leaf().exp()
    saved = y.grad_fn._raw_saved_result
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        saved.register_hooks(lambda t: t, lambda t: t)


def test_saved_tensors_of_a_function_have_hooks_too():
    class Product(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    x, y = leaf(), leaf()
    z = Product.apply(x, y)
    _, second = z.grad_fn._raw_saved_tensors
    second.register_hooks(lambda t: t, lambda t: t * 2)
    z.sum().backward()
    assert x.grad.tolist() == (y * 2).tolist()
    with pytest.raises(RuntimeError, match="already been freed"):
        z.grad_fn._raw_saved_tensors  # noqa: B018


def test_sequence_numbers_order_nodes():
    first = leaf() * 2
    assert (first * 2).grad_fn._sequence_nr() > first.grad_fn._sequence_nr()
