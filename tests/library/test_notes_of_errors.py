"""An error in a user's kernel, forward or backward says which operator ran, and with which arguments."""

import pytest

import retrograd as rg


def simple(x: rg.Tensor) -> rg.Tensor:
    return {}["simple"]


def general(x: rg.Tensor, factor: float, *, mode: str) -> rg.Tensor:
    raise ZeroDivisionError("general")


def doubled(x: rg.Tensor) -> rg.Tensor:
    return x.clone() * 2


def broken_backward(ctx, g):
    raise ArithmeticError("backward")


class BrokenForward(rg.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        raise KeyError("forward")


class BrokenBackward(rg.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return {}["backward"]


def operator(name, function):
    return rg.library.custom_op(f"notes_of_errors::{name}", function, mutates_args=())


def with_backward(x):
    double = operator("doubled", doubled)
    double.register_autograd(broken_backward)
    return double(x).sum().backward()


x = rg.ones(2, 3, requires_grad=True)
TENSOR = "a Tensor of shape (2, 3) and float32"
CALLS = {
    "a kernel": (
        lambda: operator("simple", simple)(x),
        f"in the kernel of notes_of_errors::simple, called with {TENSOR}",
    ),
    "a kernel with settings": (
        lambda: operator("general", general)(x, 2.0, mode="fast"),
        f"in the kernel of notes_of_errors::general, called with {TENSOR}, 2.0, 'fast'",
    ),
    "a backward of an operator": (
        lambda: with_backward(x),
        f"in the backward of notes_of_errors::doubled, called with {TENSOR}",
    ),
    "a forward": (lambda: BrokenForward.apply(x, 2), f"in the forward of BrokenForward, called with {TENSOR}, 2"),
    "a backward": (
        lambda: BrokenBackward.apply(x).sum().backward(),
        f"in the backward of BrokenBackward, called with {TENSOR}",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_a_users_function_names_the_operator_and_its_arguments(name):
    call, note = CALLS[name]
    with pytest.raises((KeyError, ArithmeticError)) as caught:
        call()
    assert caught.value.__notes__ == [note]
    assert str(caught.value).strip("'") in ("simple", "general", "backward", "forward")
