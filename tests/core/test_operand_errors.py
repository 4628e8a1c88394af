"""A failed call names the operator and the operand that was wrong, not only what the kernel says."""

import pytest

import retrograd as rg


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rg.mul(rg.ones(2), "text"), TypeError, "mul: expected a Tensor, an array or a number, got str"),
        (lambda: rg.matmul([1.0], rg.ones(1)), TypeError, "matmul: expected a Tensor.*, got list"),
        (lambda: rg.matmul(rg.ones(2), None), TypeError, "matmul: expected a Tensor for 'b', got NoneType"),
        (lambda: rg.zeros((2, -1)), ValueError, r"zeros: .*[Ss]izes must not be negative, got \(2, -1\)"),
        (lambda: rg.atan2(rg.ones(2) * 1j, rg.ones(2)), TypeError, "^atan2: "),
        (lambda: rg.matmul(rg.ones(2, 3), rg.ones(2, 3)), ValueError, "^matmul: "),
        (
            lambda: rg.scatter_add(rg.ones(2), 0, rg.tensor([2]), rg.ones(1)),
            IndexError,
            "^scatter_add: scatter: index 2 is",
        ),
    ],
    ids=["str", "list", "None", "negative size", "complex", "sizes", "index of a composition"],
)
def test_the_error_names_the_operator_and_the_operand(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_kernels_error_is_reported_where_sizes_depend_on_values(monkeypatch):
    def fail(x):
        raise ValueError("no such thing")

    monkeypatch.setattr("retrograd.backend.numpy.sorted_run_starts", fail)
    with pytest.raises(ValueError, match=r"^unique: unique_indices: no such thing"):
        rg.unique(rg.tensor([2, 1, 2]), return_inverse=True)


def test_the_error_of_a_custom_function_is_its_own():
    class Fails(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine\nin the forward of Fails, called with a Tensor of shape \(2,\)"):
        Fails.apply(rg.ones(2))
