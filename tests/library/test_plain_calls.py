"""Calls of custom operators on plain tensors skip most of the dispatch, and must behave as all other calls do."""

import pytest

import retrograd as rg

modes = []  # the grad mode in each run of the kernel


@rg.library.custom_op("plain_calls::product", mutates_args=())
def product(a: rg.Tensor, b: rg.Tensor) -> rg.Tensor:
    modes.append(rg.is_grad_enabled())
    if a.shape != b.shape:
        raise KeyError("shapes")
    assert not a.requires_grad
    return a * b


def setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, g):
    a, b = ctx.saved_tensors
    return g * b, g * a


product.register_autograd(backward, setup_context=setup)


def plain(requires_grad=False):
    return rg.tensor([1.0, 2.0], requires_grad=requires_grad), rg.tensor([3.0, 4.0])


@pytest.mark.parametrize("requires_grad", [False, True])
def test_the_kernel_runs_without_recording_and_the_mode_returns_also_after_an_error(requires_grad):
    modes.clear()
    a, b = plain(requires_grad)
    product(a, b)
    with pytest.raises(KeyError) as caught:
        product(a, rg.ones(3))
    assert modes == [False, False]
    assert rg.is_grad_enabled()
    assert "in the kernel of plain_calls::product, called with" in caught.value.__notes__[0]


def test_results_have_the_gradient_of_the_formula_and_saved_values_are_checked():
    a, b = plain(requires_grad=True)
    out = product(a, b)
    out.backward(rg.ones(2))
    assert a.grad.tolist() == [3.0, 4.0]
    out = product(a, b)
    b.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward(rg.ones(2))


def test_results_in_inference_mode_are_inference_tensors_and_those_in_no_grad_have_no_graph():
    for requires_grad in (False, True):
        operands = plain(requires_grad)
        with rg.inference_mode():
            assert product(*operands).is_inference()
        with rg.no_grad():
            out = product(*operands)
        assert not out.requires_grad
        assert not out.is_inference()


def test_saved_tensor_hooks_pack_what_the_formula_saves():
    packed = []
    with rg.autograd.graph.saved_tensors_hooks(lambda x: packed.append(x.tolist()) or x, lambda x: x):
        product(*plain(requires_grad=True))
    assert packed == [[1.0, 2.0], [3.0, 4.0]]


def test_subclasses_and_views_are_operands_too():
    class Logged(rg.Tensor):
        pass

    a, b = plain(requires_grad=True)
    assert type(product(a.as_subclass(Logged), b)) is Logged
    product(a.reshape(2, 1).reshape(2), b).sum().backward()
    assert a.grad.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("returned", [lambda x: x, lambda x: x[:1]])
def test_a_result_in_the_memory_of_an_operand_is_refused(returned):
    def alias(x: rg.Tensor) -> rg.Tensor:
        return returned(x)

    operator = rg.library.custom_op("plain_calls::alias", alias, mutates_args=())
    operator.register_autograd(lambda ctx, g: g)
    for requires_grad in (False, True):
        with pytest.raises(RuntimeError, match="may not alias"):
            operator(plain(requires_grad)[0])


def test_a_kernel_makes_tensors_on_the_device_of_its_operands():
    def fresh(x: rg.Tensor) -> rg.Tensor:
        return rg.zeros(x.shape)

    operator = rg.library.custom_op("plain_calls::fresh", fresh, mutates_args=())
    operator.register_autograd(lambda ctx, g: g)
    x, _ = plain()
    with rg.device("meta"):
        assert operator(x).device == rg.device("cpu")
        assert operator(rg.ones(2)).device == rg.device("meta")
