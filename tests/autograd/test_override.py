"""`__tensor_function__`: other classes override functions on their objects."""

import pytest

import retrograd as rg


class Recorder:
    """Override every function to return its name and arguments."""

    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs=None):
        return func.__name__, types, args, kwargs


class Refuses:
    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs=None):
        return NotImplemented


class Scaled:
    """A value with a unit, for a few functions."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs=None):
        if func.__name__ not in ("mul", "exp"):
            return NotImplemented
        plain = [a.value if isinstance(a, Scaled) else a for a in args]
        return Scaled(func(*plain, **(kwargs or {})))


def test_a_foreign_class_overrides_operators_with_their_arguments():
    foreign = Recorder()
    name, types, args, _ = rg.exp(foreign)
    assert (name, types, args[0] is foreign) == ("exp", (Recorder,), True)
    x = rg.ones(2)
    name, _, args, _ = rg.mul(x, foreign)
    assert (name, args[0] is x, args[1] is foreign) == ("mul", True, True)


def test_params_and_lists_of_tensors_arrive_as_they_were_given():
    foreign = Recorder()
    name, _, args, kwargs = rg.sum(foreign, dim=0, keepdim=True)
    assert (name, args[0] is foreign) == ("sum", True)
    assert (kwargs["dim"], kwargs["keepdim"]) in [(0, True), ((0,), True)]
    x = rg.ones(1)
    name, types, args, kwargs = rg.cat([x, foreign], dim=1)
    assert (name, types, kwargs) == ("cat", (Recorder,), {"dim": 1})
    assert args[0][0] is x
    assert args[0][1] is foreign


def test_arguments_are_as_the_caller_wrote_them():
    foreign, x = Recorder(), rg.ones(2, 3)
    assert rg.mean(foreign)[2:] == ((foreign,), {})
    assert rg.sum(foreign, dim=None, keepdim=False)[2:] == ((foreign,), {"dim": None, "keepdim": False})
    assert rg.sum(foreign, 1)[2:] == ((foreign, 1), {})
    assert rg.permute(foreign, [1, 0])[2:] == ((foreign, [1, 0]), {})
    assert rg.reshape(foreign, (3, 2))[2:] == ((foreign, (3, 2)), {})
    assert rg.add(input=x, other=foreign, alpha=2)[2:] == ((), {"input": x, "other": foreign, "alpha": 2})
    assert rg.add(x, foreign, alpha=2)[0] == "add"
    assert rg.stack((x, foreign))[2:] == (((x, foreign),), {})
    assert rg.clamp(foreign, 1)[2:] == ((foreign, 1), {})
    assert rg.exp(foreign, out=x)[2:] == ((foreign,), {"out": x})
    assert rg.exp(x, out=foreign)[2:] == ((x,), {"out": foreign})


def test_calls_that_do_not_fit_are_refused_before_an_override_sees_them():
    for call in (lambda f: rg.sum(f, keepdim=3), lambda f: rg.permute(f), lambda f: rg.mean(f, axes=1)):
        with pytest.raises(TypeError):
            call(Recorder())


def test_layer_norm_with_a_list_of_numbers_is_overridden():
    foreign = Recorder()
    assert rg.nn.functional.layer_norm(rg.ones(2, 3), [foreign])[0] == "layer_norm"


def test_methods_and_arithmetic_of_tensors_call_the_override_of_the_other_operand():
    foreign = Recorder()
    assert (rg.ones(2) * foreign)[0] == "mul"
    assert rg.ones(2).add(foreign)[0] == "add"
    assert rg.ones(2, 2).matmul(foreign)[0] == "matmul"


def test_an_answer_may_call_the_function_again_on_tensors():
    x = rg.tensor([2.0], requires_grad=True)
    result = rg.mul(Scaled(x), 3.0)
    assert isinstance(result, Scaled)
    result.value.sum().backward()
    assert x.grad.tolist() == [3.0]


def test_grad_and_backward_are_overridden_too():
    foreign = Recorder()
    x = rg.ones(1, requires_grad=True)
    name, types, args, kwargs = rg.autograd.grad(foreign, x, create_graph=True)
    assert (name, types) == ("grad", (Recorder,))
    assert args == ((foreign,), (x,))
    assert kwargs["create_graph"] is True
    assert rg.autograd.grad([x.sum()], [foreign])[0] == "grad"

    asked = []

    class Backward(Recorder):
        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs=None):
            asked.append(func.__name__)

    rg.autograd.backward(Backward())
    assert asked == ["backward"]


def test_the_next_class_is_called_when_one_returns_not_implemented():
    class Second(Recorder):
        pass

    name, types, _, _ = rg.add(Refuses(), Second())
    assert (name, types) == ("add", (Refuses, Second))


def test_if_no_class_knows_the_function_it_is_an_error_that_names_both():
    with pytest.raises(TypeError, match=r"sin.*NotImplemented: Refuses"):
        rg.sin(Refuses())
    with pytest.raises(TypeError, match=r"grad.*Refuses"):
        rg.autograd.grad(Refuses(), rg.ones(1, requires_grad=True))


def test_other_objects_are_refused_by_type():
    with pytest.raises(TypeError, match=r"exp.*object"):
        rg.exp(object())
