"""retain_grad: retained gradients and hooks after in-place writes."""

from .adapter import leaf, logger, outcome, parity

# ------------------------------------------------------------------------------------------------------ retain_grad


@parity
def test_retain_grad_keeps_the_gradient_of_an_inner_result(m):
    x = leaf(m, 2)
    y = x * 3
    y.retain_grad()
    (y * y).backward()
    return y.retains_grad, y.grad, (x * 1).retains_grad


@parity
def test_a_retained_gradient_accumulates(m):
    x = leaf(m, 2)
    y = x * 3
    y.retain_grad()
    y.backward(retain_graph=True)
    first = y.grad
    y.backward()
    return y.grad, first


@parity
def test_retain_grad_twice_does_not_count_twice(m):
    x = leaf(m, 2)
    y = x * 3
    y.retain_grad()
    y.retain_grad()
    y.backward()
    return y.grad


@parity
def test_a_retained_gradient_of_a_requested_input_counts_once(m):
    x = leaf(m, 2)
    y = x * 3
    y.retain_grad()
    z = y * y
    z.backward(inputs=[x, y], retain_graph=True)
    first = y.grad.clone(), x.grad.clone()
    z.backward(inputs=y)
    return first, y.grad, x.grad


@parity
def test_retain_grad_on_a_leaf_does_nothing(m):
    x = leaf(m, 2)
    x.retain_grad()
    x.backward()
    return x.retains_grad, x.grad


@parity
def test_retain_grad_needs_a_gradient(m):
    return outcome(m.ones(2).retain_grad, "require")


@parity
def test_the_retained_gradient_is_what_all_hooks_made_of_it(m):
    x = leaf(m, 2)
    y = x * 3
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.backward()
    return y.grad, x.grad


@parity
def test_a_node_pre_hook_comes_after_what_is_retained(m):
    x = leaf(m, 2)
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 100,))
    y.retain_grad()
    y.backward()
    return y.grad, x.grad


@parity
def test_retained_gradients_are_filled_by_grad_too(m):
    x = leaf(m, 2)
    y = x * 3
    y.retain_grad()
    m.autograd.grad(y, x)
    return y.grad


# --------------------------------------------------------------------------------------------------- changes in place


@parity
def test_after_a_change_in_place_a_hook_stays_with_the_old_value(m):
    x, log = leaf(m, 2), []
    y = x * 1
    y.register_hook(logger(log, "old"))
    y.mul_(3)
    y.register_hook(logger(log, "new"))
    (y * 5).backward()
    return log, x.grad


@parity
def test_after_a_change_in_place_the_retained_gradient_is_that_of_the_new_value(m):
    x = leaf(m, 2)
    y = x * 1
    y.retain_grad()
    y.mul_(3)
    (y * 5).backward()
    return y.grad, x.grad


@parity
def test_retained_gradients_and_several_changes_in_place(m):
    x = leaf(m, 2)
    y = x * 1
    y.mul_(3)
    y.retain_grad()
    y.mul_(7)
    y.add_(1)
    (y * 5).backward()
    return y.grad, y.retains_grad, x.grad


@parity
def test_a_hook_that_replaces_before_a_change_in_place(m):
    x = leaf(m, 2)
    y = x * 1
    y.register_hook(lambda g: g * 10)
    y.mul_(3)
    y.backward()
    return x.grad


@parity
def test_a_hook_on_a_leaf_stays_when_the_leaf_is_written_under_no_grad(m):
    x, log = leaf(m, 2), []
    x.register_hook(logger(log, "x"))
    with m.no_grad():
        x.mul_(10)
    (x * x).backward()
    return log


@parity
def test_a_hook_on_a_view_sees_the_part(m):
    x, log = leaf(m, 1, 2), []
    y = x * 1
    part = y[:1]
    part.register_hook(logger(log, "part", 10))
    (part * 3).backward()
    return log, x.grad


@parity
def test_a_hook_on_the_base_after_a_write_through_a_view(m):
    x, log = leaf(m, 1, 2), []
    y = x * 1
    y.register_hook(logger(log, "before"))
    y[:1].mul_(10)
    y.register_hook(logger(log, "after"))
    y.sum().backward()
    return log, x.grad


@parity
def test_a_hook_on_a_view_that_has_become_stale_does_not_fire(m):
    x, log = leaf(m, 1, 2), []
    y = x * 1
    part = y[:1]
    part.register_hook(logger(log, "stale"))
    y.mul_(2)
    (part * 3).backward()
    return log, x.grad


@parity
def test_a_hook_on_a_view_written_to_itself(m):
    x, log = leaf(m, 1, 2), []
    y = x * 1
    part = y[:1]
    part.register_hook(logger(log, "before"))
    part.mul_(10)
    part.register_hook(logger(log, "after"))
    y.sum().backward(retain_graph=True)
    part.sum().backward()
    return log, x.grad


@parity
def test_a_hook_on_a_view_that_is_an_operand_of_a_write_to_itself(m):
    """The hook sees what flows through the view as an operand, and not what flows through its base."""
    log, grads = [], []
    for write in (
        lambda v: v.add_(v),
        lambda v: v.sub_(v, alpha=2),
        lambda v: v.lerp_(v, 0.5),
        lambda v: v.copy_(v),
        lambda v: v.__setitem__(m.tensor([0]), v.clone()),
        lambda v: v.__setitem__(slice(None), v),
    ):
        x = leaf(m, 3, 2)
        view = (x * 1)[:1]
        view.register_hook(logger(log, "view", 10))
        write(view)
        view.sum().backward()
        grads.append(x.grad)
    return log, grads


@parity(known="a view keeps its hooks after a write that is not recorded", ours="[[['part', [1.0]]], [10.0, 0.0]]")
def test_a_hook_on_a_view_written_under_no_grad(m):
    x, log = leaf(m, 1, 2), []
    part = (x * 1)[:1]
    part.register_hook(logger(log, "part", 10))
    with m.no_grad():
        part.zero_()
    part.sum().backward()
    return log, x.grad


@parity(known="a tensor that becomes a view in place is no base of older views any more", ours="[[], [1.0, 0.0]]")
def test_a_hook_on_a_tensor_that_became_a_view_in_place(m):
    x, log = leaf(m, 1, 2), []
    y = x * 1
    part = y[:1]
    y.unsqueeze_(0)
    y.register_hook(logger(log, "y", 10))
    part.sum().backward()
    return log, x.grad


@parity(known="the gradient becomes a view with its tensor", ours="[[1.0, 1.0]]")
def test_the_retained_gradient_of_a_tensor_that_becomes_a_view_in_place(m):
    x = leaf(m, 1, 2)
    y = x * 1
    y.retain_grad()
    y.unsqueeze_(0)
    y.sum().backward()
    return y.grad


@parity(known="this result is a tensor of its own", ours="[[['y', [1.0, 1.0, 1.0, 1.0]]], [20.0, 20.0]]")
def test_a_hook_on_a_result_that_pytorch_computes_as_a_view(m):
    x, log = leaf(m, 1, 2), []
    y = x.repeat_interleave(2, 0)
    y.register_hook(logger(log, "y", 10))
    y.add_(1)
    y.sum().backward()
    return log, x.grad


@parity
def test_a_write_to_a_part_of_an_expanded_tensor(m):
    y = m.zeros(1).expand(3)
    y[0].add_(1)
    return y


@parity
def test_the_retained_gradient_of_a_base_written_through_a_view(m):
    x = leaf(m, 1, 2)
    y = x * 1
    y.retain_grad()
    y[:1].mul_(10)
    (y * 3).sum().backward()
    return y.grad, x.grad


@parity
def test_the_retained_gradient_of_a_view_written_to(m):
    x = leaf(m, 1, 2)
    y = x * 1
    part = y[:1]
    part.retain_grad()
    part.mul_(10)
    (part * 3).sum().backward()
    return part.grad, x.grad


@parity
def test_a_hook_on_a_constant_that_became_a_result(m):
    x, log = m.tensor([1.0, 2.0]), []
    w = leaf(m, 3, 4)
    x.mul_(w)
    x.register_hook(logger(log, "x"))
    x.sum().backward()
    return log, w.grad


@parity
def test_a_hook_on_a_tensor_detached_in_place(m):
    x = leaf(m, 2)
    y = x * 3
    y.register_hook(print)
    y.detach_()
    return y.requires_grad, outcome(lambda: y.register_hook(print)), outcome(y.backward)
