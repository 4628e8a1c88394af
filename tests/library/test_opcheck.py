"""`opcheck` reports every kind of wrong operator by the name of the check, and passes correct ones."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.library import custom_op, opcheck
from retrograd.testing import OpCheckError

Tensor = rg.Tensor
X = rg.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])

count = 0


def defined(kernel, *, mutates_args=(), schema=None, **parts):
    """Return a new operator with that kernel; `parts` are arguments of its registrations."""
    global count
    count += 1
    op = custom_op(f"opcheck::{kernel.__name__}_{count}", mutates_args=mutates_args, schema=schema)(kernel)
    if "backward" in parts:
        op.register_autograd(parts["backward"], setup_context=parts.get("setup_context"))
    for name in ("impl_jvp", "impl_abstract", "impl_vmap"):
        if name in parts:
            getattr(op, name)(parts[name])
    return op


def failing(op, args, kwargs=None, **options):
    """Return the failing checks, by name."""
    results = opcheck(op, args, kwargs, raise_exception=False, **{"test_utils": "ALL", **options})
    return {name: text for name, text in results.items() if text != "SUCCESS"}


def keep_inputs(ctx, inputs, output):
    ctx.save_for_backward(*[x for x in inputs if isinstance(x, Tensor)])


def square(x: Tensor) -> Tensor:
    return rg.as_tensor(x.numpy() ** 2)


def square_backward(ctx, g):
    (x,) = ctx.saved_tensors
    return g * 2 * x


# ---------------------------------------------------------------------------------------------------- honest ones


def test_an_operator_of_numpy_with_a_formula_passes():
    op = defined(square, backward=square_backward, setup_context=keep_inputs)
    results = opcheck(op, (X,))
    assert [*results] == [
        "test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic",
    ]  # fmt: skip
    assert set(results.values()) == {"SUCCESS"}
    assert set(opcheck(op, (X,), test_utils="ALL")) == {
        "test_schema", "test_fake", "test_gradients", "test_forward", "test_batching", "test_tracing", "test_strides",
    }  # fmt: skip


def test_an_operator_with_every_rule_passes():
    op = defined(
        square,
        backward=square_backward,
        setup_context=keep_inputs,
        impl_jvp=lambda inputs, tangents, output: 2 * inputs.x * tangents.x,
        impl_abstract=lambda x: x.new_empty(x.shape),
        impl_vmap=lambda info, in_dims, x: (x * x, in_dims[0]),
    )
    assert failing(op, (X,)) == {}


def test_an_operator_without_formula_passes_where_none_is_needed():
    assert failing(defined(square), (X,)) == {}


def test_a_formula_that_leaves_the_graph_passes_as_what_it_cannot_do_it_refuses():
    def backward(ctx, g):
        return rg.as_tensor(2 * ctx.saved_tensors[0].detach().numpy() * g.detach().numpy())

    assert failing(defined(square, backward=backward, setup_context=keep_inputs), (X,)) == {}


def test_lists_optionals_and_outputs_that_are_no_tensors_pass():
    op = custom_op(
        "opcheck::mix", "(Tensor x, Tensor[] ys, Tensor? w, int n=2, *, float[] s) -> (Tensor, Tensor[], int)"
    )(lambda x, ys, w, n, *, s: ...)

    @op.impl("cpu")
    def kernel(x, ys, w, n=2, *, s):
        weight = 1.0 if w is None else w
        return x * n * weight, [y * f for y, f in zip(ys, s, strict=True)], len(ys)

    @op.impl_save_for_backward()
    def save(inputs, output):
        return {"x": inputs.x, "w": inputs.w, "n": inputs.n, "s": inputs.s}

    @op.impl_backward(output_differentiability=[True, True, False])
    def backward(ctx, saved, g, gs, count):
        w = saved["w"]
        return {
            "x": g * saved["n"] * (1.0 if w is None else w),
            "ys": [h * f for h, f in zip(gs, saved["s"], strict=True)],
            "w": None if w is None else g * saved["n"] * saved["x"],
        }

    ys = [rg.tensor([1.0, 2.0]), rg.tensor([3.0])]
    assert failing(op, (X, ys, None), {"s": [2.0, 3.0]}) == {}
    assert failing(op, (X, ys, X + 1, 3), {"s": [2.0, 3.0]}) == {}


def test_an_operator_that_writes_where_it_says_passes():
    def add_to(x: Tensor, by: float) -> None:
        x.numpy()[...] += by

    given = X.clone()
    assert failing(defined(add_to, mutates_args=("x",)), (given, 2.0)) == {}
    assert given.tolist() == X.tolist()


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (rg.mul, (X, X[0])),
        (rg.sum, (X, 1)),
        (rg.cat, ([X, X],)),
        (rg.topk, (X, 2)),
        (rg.argmax, (X,)),
        ("matmul", (X, X[0])),
    ],
)
def test_ours_pass(op, args):
    assert failing(op, args) == {}


# ------------------------------------------------------------------------------------------------ dishonest ones


def test_a_wrong_shape_of_the_abstract_function_is_caught():
    op = defined(square, impl_abstract=lambda x: x.new_empty(x.shape[::-1]))
    assert set(failing(op, (X,))) == {"test_fake"}


def test_a_shape_that_is_right_only_for_the_given_sizes_is_caught():
    op = defined(square, impl_abstract=lambda x: x.new_empty((2, 3)))
    wrong = failing(op, (X,))
    assert set(wrong) == {"test_fake"}
    assert "[3, 4]" in wrong["test_fake"]


def test_a_wrong_dtype_of_the_abstract_function_is_caught():
    op = defined(square, impl_abstract=lambda x: rg.empty(x.shape, dtype=rg.float32))
    assert set(failing(op, (X,))) == {"test_fake"}  # only float64 shows it


def test_a_shape_that_depends_on_values_is_caught():
    def positive(x: Tensor) -> Tensor:
        return rg.as_tensor(x.numpy()[x.numpy() > 0])

    assert "a run on zeros" in failing(defined(positive), (X,))["test_fake"]


def test_a_wrong_gradient_is_caught_and_the_forward_derivative_that_follows_from_it():
    op = defined(square, backward=lambda ctx, g: g * 3 * ctx.saved_tensors[0], setup_context=keep_inputs)
    assert set(failing(op, (X,))) == {"test_gradients", "test_forward"}


def test_a_gradient_that_is_right_only_at_the_given_values_is_caught():
    op = defined(square, backward=lambda ctx, g: 2 * g)
    assert "test_gradients" in failing(op, (rg.ones(3),))


def test_a_wrong_second_derivative_is_caught():
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0].detach()

    wrong = failing(defined(square, backward=backward, setup_context=keep_inputs), (X,))
    assert set(wrong) == {"test_gradients"}
    assert wrong["test_gradients"].startswith("second order")


def test_a_formula_that_writes_to_its_gradient_is_caught():
    def backward(ctx, g):
        g.numpy()[...] *= 2
        return g

    def double(x: Tensor) -> Tensor:
        return rg.as_tensor(2 * x.numpy())

    assert "writes to the gradient of output 0" in failing(defined(double, backward=backward), (X,))["test_gradients"]


def test_a_missing_formula_is_caught_where_an_input_requires_grad():
    wrong = failing(defined(square), (X.clone().requires_grad_(),))
    assert "no gradient formula" in wrong["test_gradients"]


def test_a_wrong_forward_rule_is_caught():
    def triple(x: Tensor) -> Tensor:
        return rg.as_tensor(2 * x.numpy() + x.numpy())

    def forward(inputs, tangents, output):  # the derivative of half of it
        return 2 * tangents.x

    assert set(failing(defined(triple, backward=lambda ctx, g: 3 * g, impl_jvp=forward), (X,))) == {"test_forward"}


def test_a_forward_rule_that_forgets_an_input_is_caught():
    def product(x: Tensor, y: Tensor) -> Tensor:
        return rg.as_tensor(x.numpy() * y.numpy())

    def forward(inputs, tangents, output):
        return None if tangents.x is None else tangents.x * inputs.y

    wrong = failing(defined(product, impl_jvp=forward), (X, X + 1))
    assert set(wrong) == {"test_forward"}
    assert "along y" in wrong["test_forward"]


@pytest.mark.parametrize(
    "rule",
    [
        lambda info, in_dims, x: (x.cumsum(0), in_dims[0]),
        lambda info, in_dims, x: (2 * x.cumsum(-1), in_dims[0]),
        lambda info, in_dims, x: (x[:1].cumsum(-1).expand(x.shape).clone(), 0),
    ],
    ids=["the dimension is the batch's", "a factor", "the first example only"],
)
def test_a_wrong_batching_rule_is_caught(rule):
    def running(x: Tensor) -> Tensor:
        return rg.as_tensor(np.cumsum(x.numpy(), -1))

    assert set(failing(defined(running, impl_vmap=rule), (X[0],))) == {"test_batching"}


def test_a_batching_rule_that_is_only_right_where_all_inputs_are_batched_is_caught():
    def scaled(x: Tensor, y: Tensor) -> Tensor:
        return rg.as_tensor(x.numpy() * y.numpy().sum())

    op = defined(scaled, impl_vmap=lambda info, in_dims, x, y: (x * y.sum(-1)[:, None], 0))
    assert set(failing(op, (X[0], X[1]))) == {"test_batching"}


def test_an_undeclared_write_is_caught_with_the_argument():
    def clamp(x: Tensor, low: Tensor) -> Tensor:
        np.maximum(x.numpy(), low.numpy(), out=x.numpy())
        return rg.as_tensor(x.numpy().copy())

    wrong = failing(defined(clamp), (X, rg.zeros(())), test_utils="test_schema")
    assert "'x'" in wrong["test_schema"]


def test_an_undeclared_write_to_a_list_is_reported_with_its_index():
    def total(xs: list[Tensor]) -> Tensor:
        xs[0].numpy()[...] += xs[1].numpy()
        return rg.as_tensor(xs[0].numpy().copy())

    assert "'xs[0]'" in failing(defined(total), ([X, X],), test_utils="test_schema")["test_schema"]


@pytest.mark.parametrize("returned", [lambda x: x, lambda x: rg.as_tensor(x.numpy().T), lambda x: x.reshape(-1)])
def test_a_result_in_the_memory_of_an_input_is_caught(returned):
    def alias(x: Tensor) -> Tensor:
        return returned(x)

    assert "memory of the argument 'x'" in failing(defined(alias), (X,))["test_schema"]


def test_a_result_that_is_an_input_for_some_memory_only_is_caught():
    def contiguous(x: Tensor) -> Tensor:
        a = x.numpy()
        return rg.as_tensor(a if not a.flags.c_contiguous else a.copy())

    assert "memory of the argument 'x'" in failing(defined(contiguous), (X,))["test_schema"]


def test_two_results_in_one_memory_are_caught():
    def twice(x: Tensor) -> list[Tensor]:
        a = x.numpy() * 2
        return [rg.as_tensor(a), rg.as_tensor(a[0])]

    assert "show the same memory" in failing(defined(twice), (X,))["test_schema"]


def test_a_result_of_another_kind_than_the_schema_s_is_caught():
    def size(x: Tensor) -> tuple[Tensor, int]:
        return x * 2, 1.5

    assert "must be int" in failing(defined(size), (X,))["test_schema"]


def test_a_kernel_that_reads_raw_memory_is_caught_by_strides():
    def raw(x: Tensor) -> Tensor:
        a = x.numpy()
        flat = np.frombuffer(a.tobytes("A"), a.dtype)  # in the order of memory, whatever that is
        return rg.as_tensor((flat * 2).reshape(a.shape))

    wrong = failing(defined(raw), (X,))
    assert set(wrong) == {"test_strides"}
    assert "columns before rows" in wrong["test_strides"]


def test_control_flow_that_tracing_misses_is_caught():
    def count(x: Tensor) -> tuple[Tensor, int]:
        return rg.as_tensor(x.numpy() * 2), int((x.numpy() > 0).sum())

    wrong = failing(defined(count), (X,), test_utils="test_tracing")
    assert "constants of the graph" in wrong["test_tracing"]


def test_a_branch_of_the_formula_on_a_value_that_the_graph_keeps_is_caught():
    def clipped(x: Tensor) -> tuple[Tensor, int]:
        below = int(x.numpy().sum() < 3)
        return rg.as_tensor(x.numpy() * (1 + below)), below

    def setup(ctx, inputs, output):
        ctx.factor = 1 + output[1]

    op = defined(clipped, backward=lambda ctx, g, _: g * ctx.factor, setup_context=setup)
    assert "test_tracing" in failing(op, (rg.tensor([1.0, 2.1]),))


def test_an_operator_that_fails_is_reported_by_its_checks():
    def broken(x: Tensor) -> Tensor:
        raise LookupError("no table")

    assert "LookupError: no table" in failing(defined(broken), (X,))["test_schema"]


# ------------------------------------------------------------------------------------------------- how it is called


def test_the_error_names_operator_check_and_line():
    op = defined(square, backward=lambda ctx, g: 3 * g)
    with pytest.raises(OpCheckError) as raised:
        opcheck(op, (X,))
    text = str(raised.value)
    assert op.name in text
    assert "test_autograd_registration" in text
    assert f"the gradient formula at {__file__}" in text
    assert raised.value.results["test_schema"] == "SUCCESS"


def test_only_the_named_checks_run_also_by_pytorch_s_names():
    op = defined(square, backward=lambda ctx, g: 3 * g)
    assert opcheck(op, (X,), test_utils="test_faketensor") == {"test_faketensor": "SUCCESS"}
    names = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    assert set(failing(op, (X,), test_utils=names)) == {"test_autograd_registration"}


def test_an_unknown_check_and_what_is_no_operator_are_refused():
    with pytest.raises(ValueError, match="test_speed"):
        opcheck(rg.mul, (X, X), test_utils="test_speed")
    with pytest.raises(TypeError, match="operator"):
        opcheck(len, (X,))
    with pytest.raises(TypeError, match="missing"):
        opcheck(rg.mul, (X,))


def test_tolerances_are_the_caller_s():
    def nearly(x: Tensor) -> Tensor:
        return rg.as_tensor(x.numpy() * 2)

    op = defined(nearly, backward=lambda ctx, g: 2.01 * g)
    assert "test_gradients" in failing(op, (X,))
    assert failing(op, (X,), atol=0.1, rtol=0.1) == {}


def test_the_arguments_stay_as_they_are():
    def ruin(x: Tensor) -> Tensor:
        x.numpy()[...] = 0
        return rg.as_tensor(x.numpy().copy())

    given = X.clone().requires_grad_()
    failing(defined(ruin), (given,))
    assert given.tolist() == X.tolist()
    assert given.grad is None


def test_it_is_reached_by_both_names():
    assert rg.library.opcheck is rg.testing.opcheck
