"""Version counters: which tensors share one, what increments it, and the error that names it."""

import pytest

from .adapter import leaf, outcome, parity

CHANGES = {
    "add_": lambda m, t: t.add_(1),
    "mul_": lambda m, t: t.mul_(2),
    "zero_": lambda m, t: t.zero_(),
    "fill_": lambda m, t: t.fill_(3),
    "copy_": lambda m, t: t.copy_(m.ones(2)),
    "an index": lambda m, t: t.__setitem__(0, 5.0),
    "a view": lambda m, t: t[:1].add_(1),
    "an operator": lambda m, t: t.__iadd__(1),
    "a detached copy": lambda m, t: t.detach().add_(1),
    "the data": lambda m, t: t.data.add_(1),
    "other data": lambda m, t: setattr(t, "data", m.ones(2)),
    "a view of a view": lambda m, t: t.view(2, 1)[0].mul_(2),
}


@pytest.mark.parametrize("name", CHANGES)
@parity
def test_writes_that_count_as_a_change(m, name):
    t = m.tensor([1.0, 2.0])
    before = t._version
    CHANGES[name](m, t)
    return before, t._version, t


@pytest.mark.parametrize("name", CHANGES)
@parity
def test_which_changes_of_a_saved_value_are_an_error_at_backward(m, name):
    x, w = leaf(m, 1, 2), m.tensor([3.0, 4.0])
    y = (x * w).sum()
    CHANGES[name](m, w)
    return outcome(y.backward, "mul", "version"), x.grad


@pytest.mark.parametrize("name", CHANGES)
@parity
def test_a_change_under_no_grad_counts_too(m, name):
    x, w = leaf(m, 1, 2), leaf(m, 3, 4)
    y = (x * w).sum()
    with m.no_grad():
        CHANGES[name](m, w)
    return outcome(y.backward, "mul"), x.grad


@parity
def test_base_and_views_share_one_counter(m):
    base = m.ones(4)
    view = base[1:3]
    deeper = view.view(2, 1)
    deeper.add_(1)
    base.mul_(2)
    return base._version, view._version, deeper._version


@parity
def test_a_detached_tensor_shares_the_counter_and_data_does_not(m):
    x = m.ones(2)
    cut, raw = x.detach(), x.data
    x.add_(1)
    cut.add_(1)
    raw.add_(1)
    return x._version, cut._version, raw._version, x


@parity
def test_a_copy_has_a_counter_of_its_own(m):
    x = m.ones(2)
    x.add_(1)
    copy = x.clone()
    x.add_(1)
    return x._version, copy._version


@parity
def test_new_data_keeps_the_counter(m):
    x = m.ones(2)
    x.add_(1)
    x.data = m.zeros(2)
    return x._version, x


@parity
def test_a_view_made_under_no_grad_shares_the_counter(m):
    x = leaf(m, 1, 2) * 1
    with m.no_grad():
        view = x[:1]
        view.add_(1)
    return x._version, view._version


@parity
def test_reading_counts_for_nothing(m):
    x = leaf(m, 1, 2)
    (x * x + x.exp()).sum().backward()
    return x._version


@parity
def test_a_write_to_a_part_that_was_not_saved_counts_all_the_same(m):
    x, w = leaf(m, 1), m.tensor([3.0, 4.0])
    y = x * w[:1]
    w[1:].zero_()
    return outcome(y.backward), x.grad


@parity
def test_writing_the_same_values_counts(m):
    x, w = leaf(m, 1, 2), m.tensor([3.0, 4.0])
    y = (x * w).sum()
    w.mul_(1)
    return outcome(y.backward)


@parity(known="only what the pass reads is checked; PyTorch checks all that the node saved", ours="[[3.0]]")
def test_an_operand_that_the_pass_does_not_need_may_change(m):
    x, w = leaf(m, 2) * 1, leaf(m, 3)
    y = x * w
    before = m.autograd.graph.get_gradient_edge(x)
    x.add_(1)
    return outcome(lambda: m.autograd.grad(y, before))


@parity
def test_a_value_that_was_not_saved_may_change(m):
    x, w = leaf(m, 1, 2), m.tensor([3.0, 4.0])
    z = (x + w).sum()
    w.mul_(2)
    return outcome(z.backward), x.grad


@parity
def test_the_error_names_the_operator_both_versions_and_the_line(m):
    x, w = leaf(m, 1, 2), m.tensor([3.0, 4.0])
    w.add_(1)
    z = (x * w).sum()
    w.add_(1)
    w.add_(1)
    return outcome(z.backward, "mul", "version 3", "version 1", "test_versions_parity.py:", "(2,)")


@parity
def test_the_error_leaves_what_was_done_before_it(m):
    x, v, w = leaf(m, 1), leaf(m, 2), m.tensor([3.0])
    y = x * w
    w.add_(1)
    return outcome((y + v.exp()).backward), x.grad


@parity
def test_an_error_at_backward_frees_nothing_that_was_not_reached(m):
    x, w = leaf(m, 1), m.tensor([3.0])
    y = x * w
    z = y * 2
    w.add_(1)
    return outcome(z.backward), outcome(lambda: m.autograd.grad((y + 1), y)), x.grad


@parity
def test_a_leaf_changed_by_an_optimizer_between_forward_and_backward(m):
    x, w = leaf(m, 1, 2), leaf(m, 3, 4)
    first, second = (x * w).sum(), (x + w).sum()
    first.backward(retain_graph=True)
    with m.no_grad():
        w.sub_(w.grad)
    return outcome(second.backward), outcome(first.backward), w


@parity
def test_a_counter_may_be_raised_by_hand(m):
    x, w = leaf(m, 1, 2), m.tensor([3.0, 4.0])
    y = (x * w).sum()
    m.autograd.graph.increment_version(w)
    return w._version, outcome(y.backward)


@parity
def test_several_counters_may_be_raised_at_once(m):
    a, b = m.ones(2), m.ones(3)
    m.autograd.graph.increment_version([a, b, b[:1]])
    return a._version, b._version


@parity
def test_a_counter_may_be_kept_from_rising(m):
    x, w = leaf(m, 1, 2), m.tensor([3.0, 4.0])
    y = (x * w).sum()
    with m.autograd._unsafe_preserve_version_counter(w):
        w.mul_(10)
    return w._version, outcome(y.backward), x.grad


@parity
def test_several_counters_may_be_kept_from_rising(m):
    a, b = m.ones(2), m.ones(2)
    with m.autograd._unsafe_preserve_version_counter((a, b)):
        a.add_(1)
        b[:1].add_(1)
    b.add_(1)
    return a._version, b._version


@parity
def test_the_version_cannot_be_set(m):
    x = m.ones(2)
    return outcome(lambda: setattr(x, "_version", 5))


@parity
def test_results_start_at_zero(m):
    x = leaf(m, 1, 2)
    return [t._version for t in (x, x * 2, x[0], m.ones(2), x.detach())]


@parity
def test_a_change_in_place_of_a_result_counts_once(m):
    x = leaf(m, 1, 2)
    y = x * 1
    y.add_(1).mul_(2)
    y[0] = 5
    y += 1
    return y._version


@parity
def test_a_view_of_a_leaf_cannot_be_written_nor_the_leaf(m):
    x = leaf(m, 1, 2)
    return outcome(lambda: x.add_(1), "leaf"), outcome(lambda: x[:1].zero_(), "leaf"), x._version, x
