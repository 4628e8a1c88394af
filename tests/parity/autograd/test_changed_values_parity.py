"""Detaching, changes of saved tensors, out=, and attributes that survive a write."""

import pytest

from .adapter import data, leaf, outcome, parity
from .observing import gradients, state

# ---------------------------------------------------------------------------- detaching


@parity
def test_a_detached_tensor_shares_memory_and_version(m):
    x = leaf(m, 1, 2)
    y = x * 1
    d = y.detach()
    d.add_(1)
    y.mul_(2)
    return state(y), state(d), d._is_view()


@parity
def test_data_shares_memory_but_no_version(m):
    x = leaf(m, 1, 2)
    y = x * 1
    y.data.add_(1)
    return state(y), gradients(m, y * y, x)


@parity
def test_new_data_keep_the_version(m):
    x = leaf(m, 1, 2)
    with m.no_grad():
        x.add_(1)
    x.data = m.tensor([7.0, 8.0])
    return state(x), gradients(m, x * x, x)


@parity
def test_a_write_of_a_variable_to_a_detached_tensor(m):
    x, y = leaf(m, 1, 2), m.zeros(2)
    d = y.detach()
    d.copy_(x)
    return state(y), state(d)


@parity
def test_detach_in_place(m):
    x = leaf(m, 1, 2)
    y = x * 2
    same = y.detach_() is y
    return same, state(y), state(x.detach_())


@parity
def test_detach_in_place_on_a_view(m):
    y = leaf(m, 1, 2) * 2
    return outcome(y[:1].detach_), outcome(y.detach()[:1].detach_), state(y)


@parity
def test_detach_in_place_of_a_saved_input(m):
    x = leaf(m, 1, 2)
    y = x * 2
    z = (y * y).sum()
    y.detach_()
    return outcome(z.backward), x.grad


@parity
def test_detach_in_place_of_a_saved_output(m):
    x = leaf(m, 1, 2)
    y = x.exp()
    z = y.sum()
    y.detach_()
    return outcome(z.backward), x.grad


# ---------------------------------------------------------------------------- changed saved values

CHANGED = {
    "mul": (lambda y, w: y * w, "mul"),
    "mul by a number": (lambda y, w: y * 3, ""),
    "add": (lambda y, w: y + w, ""),
    "div into": (lambda y, w: w / y, "div"),
    "exp": (lambda y, w: y.exp(), ""),
    "sin": (lambda y, w: y.sin(), "sin"),
    "pow": (lambda y, w: y**3, "pow"),
    "square root": (lambda y, w: y.sqrt(), ""),
    "sum": (lambda y, w: y.sum(), ""),
    "slice": (lambda y, w: y[:1], ""),
    "index tensor": (lambda y, w: y[[0, 1]], ""),
    "clone": (lambda y, w: y.clone(), ""),
    "maximum": (lambda y, w: y.maximum(w), "maximum"),
    "clamp": (lambda y, w: y.clamp(0, 1), "clamp"),
    "abs": (lambda y, w: y.abs(), "abs"),
    "relu": (lambda y, w: y.relu(), ""),
    "dot": (lambda y, w: y.dot(w), ""),
    "prod": (lambda y, w: y.prod(), "prod"),
    "cumsum": (lambda y, w: y.cumsum(0), ""),
    "log_softmax": (lambda y, w: y.log_softmax(0), ""),
    "norm": (lambda y, w: y.norm(), ""),
    "var": (lambda y, w: y.var(), "var"),
}


@pytest.mark.parametrize("name", CHANGED)
@parity
def test_an_input_changed_after_its_use(m, name):
    f, operator = CHANGED[name]
    x, w = leaf(m, 1, 2), leaf(m, 3, 0.5)
    y = x * 1
    z = f(y, w).sum()
    y.add_(1)
    return outcome(z.backward, operator, "version"), x.grad, w.grad


OUTPUTS = ["exp", "sqrt", "tanh", "sigmoid", "relu", "reciprocal", "rsqrt", "exp2"]
OTHERS = ["sin", "abs", "square", "neg", "log", "erf"]


@pytest.mark.parametrize("name", OUTPUTS + OTHERS)
@parity
def test_an_output_changed_after_it_was_made(m, name):
    x = leaf(m, 1, 2)
    y = getattr(x, name)()
    y.mul_(2)
    return outcome(y.sum().backward, name, "version"), x.grad


@parity
def test_a_quotient_changed_after_it_was_made(m):
    x, w = leaf(m, 1, 2), leaf(m, 4, 0.5)
    y = x / w
    y.mul_(2)
    return outcome(y.sum().backward), x.grad, w.grad


@parity
def test_the_error_names_the_operator_and_both_versions(m):
    x = leaf(m, 1, 2)
    y = x * 1
    y.add_(1)
    z = (y * x).sum()
    y.add_(1).add_(1)
    return outcome(z.backward, "MulBackward0", "version 3", "version 1")


@parity
def test_a_changed_index_is_detected(m):
    x, index = leaf(m, 1, 2, 3), m.tensor([0, 1])
    z = x[index].sum()
    index.add_(1)
    return outcome(z.backward)


@parity
def test_a_changed_mask_is_detected(m):
    x, mask = leaf(m, 1, 2), m.tensor([True, False])
    z = m.where(mask, x, x * 2).sum()
    mask[1] = True
    return outcome(z.backward)


@parity
def test_a_changed_plain_factor_is_detected(m):
    x, y = leaf(m, 1, 2), m.ones(2)
    z = (x * y).sum()
    y.zero_()
    return outcome(z.backward, "mul")


@parity
def test_a_change_under_no_grad_is_detected(m):
    x = leaf(m, 1, 2)
    z = (x * x).sum()
    with m.no_grad():
        x.add_(1)
    return outcome(z.backward, "mul")


@parity
def test_a_change_through_a_view_is_detected(m):
    x = leaf(m, 1, 2)
    y = x * 1
    z = (y * y).sum()
    y[:0].zero_()
    return outcome(z.backward, "mul")


@parity
def test_a_change_of_the_base_is_detected_by_a_saved_view(m):
    x = leaf(m, 1, 2)
    y = x * 1
    z = (y[:1] * y[1:]).sum()
    y[1] = 7
    return outcome(z.backward, "mul")


@parity
def test_a_change_through_data_is_not_detected(m):
    x = leaf(m, 1, 2)
    z = (x * x).sum()
    x.data.mul_(10)
    return outcome(z.backward), x.grad


@parity
def test_a_change_that_was_undone_is_still_detected(m):
    x = leaf(m, 1, 2)
    y = x * 1
    z = (y * y).sum()
    y.add_(1).sub_(1)
    return outcome(z.backward)


@parity
def test_a_value_saved_after_the_change_is_fine(m):
    x = leaf(m, 1, 2)
    y = x * 1
    y.add_(1)
    z = (y * y).sum()
    return outcome(z.backward), x.grad


# ---------------------------------------------------------------------------- out=, hooks, strides


@parity
def test_out_writes_into_a_given_tensor(m):
    a, out = m.tensor([1.0, 2.0]), m.zeros(2)
    view = out[:1]
    same = m.add(a, a, out=out) is out
    return same, state(out), view


@parity
def test_out_is_not_recorded(m):
    x, a, out = leaf(m, 1, 2), m.ones(2), m.zeros(2)
    seen = [outcome(lambda: m.add(x, a, out=out)), outcome(lambda: m.mul(a, a, out=x * 1))]
    with m.no_grad():
        m.add(x, a, out=out)
    return seen, state(out)


@parity
def test_hooks_stay_with_the_version_on_which_they_were_put(m):
    x, log = leaf(m, 1, 2), []
    y = x * 1
    y.register_hook(lambda g: log.append(["before", data(g)]))
    y.mul_(3)
    y.register_hook(lambda g: log.append(["after", data(g)]))
    y.sum().backward()
    return log


@parity
def test_retain_grad_moves_to_the_version_after_the_write(m):
    x = leaf(m, 1, 2)
    y = x * 1
    y.retain_grad()
    y.mul_(3)
    (y * 2).sum().backward()
    return y.grad, x.grad


@parity
def test_hooks_on_a_view_that_is_stale_do_not_run(m):
    x, log = leaf(m, 1, 2), []
    y = x * 1
    v = y[:1]
    v.register_hook(lambda g: log.append(data(g)))
    y.mul_(2)
    (v * 5).sum().backward()
    return log, x.grad


def strided_leaf(m, name):
    """Return a 2 by 3 leaf with a given memory layout."""
    made = {
        "row-major": lambda: m.ones(2, 3),
        "transposed": lambda: m.ones(3, 2).transpose(0, 1),
        "sparse slice": lambda: m.ones(2, 6)[:, ::2],
        "expanded": lambda: m.ones(2, 1).expand(2, 3),
    }
    return made[name]().requires_grad_()


@pytest.mark.parametrize("name", ["row-major", "transposed", "sparse slice", "expanded"])
@parity
def test_a_gradient_has_the_strides_of_its_leaf_if_these_are_dense(m, name):
    x = strided_leaf(m, name)
    (x * 2).sum().backward()
    first = x.grad.numpy().strides
    x.grad = None
    x.sum().backward()
    return first, x.grad.numpy().strides
