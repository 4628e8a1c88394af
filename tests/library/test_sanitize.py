"""Under `sanitize()`, a kernel can't write to or return memory it does not own; built-in operators pass."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.library import custom_op, sanitize

Tensor = rg.Tensor
count = 0


def defined(kernel, mutates_args=()):
    global count
    count += 1
    return custom_op(f"sanitize::{kernel.__name__}_{count}", mutates_args=mutates_args)(kernel)


def test_it_is_on_in_our_tests():
    def fill(x: Tensor) -> Tensor:
        x.numpy()[...] = 3
        return x.clone()

    with pytest.raises(ValueError, match="read-only"):
        defined(fill)(rg.ones(2))


def test_it_can_be_switched_off_in_a_block_and_comes_back():
    def fill(x: Tensor) -> Tensor:
        x.numpy()[...] = 3
        return x.clone()

    op = defined(fill)
    with sanitize(False):
        assert op(rg.ones(2)).tolist() == [3, 3]
        with sanitize(), pytest.raises(ValueError, match="read-only"):
            op(rg.ones(2))
        assert op(rg.ones(2)).tolist() == [3, 3]
    with pytest.raises(ValueError, match="read-only"):
        op(rg.ones(2))


def write_by_numpy(x):
    x.numpy()[...] = 0


def write_by_tensor(x):
    x.add_(1)


def write_by_index(x):
    x[0] = 5


@pytest.mark.parametrize("write", [write_by_numpy, write_by_tensor, write_by_index])
def test_a_write_to_an_input_fails_where_it_happens_and_names_the_operator(write):
    def overwrite(x: Tensor) -> Tensor:
        write(x)
        return x.clone()

    x, op = rg.ones(2), defined(overwrite)
    with pytest.raises((ValueError, RuntimeError), match="read-only") as raised:
        op(x)
    assert op.name in "".join([str(raised.value), *getattr(raised.value, "__notes__", ())])
    assert x.tolist() == [1, 1]


def test_a_write_to_a_tensor_in_a_list_fails():
    def total(xs: list[Tensor], n: int) -> Tensor:
        xs[1].numpy()[...] += n
        return xs[1].clone()

    with pytest.raises(ValueError, match="read-only"):
        defined(total)([rg.ones(2), rg.ones(2)], 2)


def test_a_write_that_goes_round_the_flag_is_detected():
    def sneak(x: Tensor, n: int) -> Tensor:
        a = x.numpy()
        while a.base is not None:
            a = a.base
        a[...] = n
        return rg.zeros(2)

    with pytest.raises(RuntimeError, match="has written to the argument 'x'"):
        defined(sneak)(rg.ones(2), 3)


def test_marked_arguments_may_be_written_to_and_no_others():
    def move(x: Tensor, y: Tensor) -> None:
        x.numpy()[...] += y.numpy()
        if y.numpy()[0] == 0:
            y.numpy()[...] = 1

    op, x = defined(move, ("x",)), rg.ones(2)
    op(x, rg.ones(2))
    assert x.tolist() == [2, 2]
    with pytest.raises(ValueError, match="read-only"):
        op(x, rg.zeros(2))


def test_a_result_in_a_list_that_shows_an_input_in_a_list_is_refused():
    def swap(xs: list[Tensor]) -> list[Tensor]:
        return [xs[1].clone(), rg.as_tensor(xs[0].numpy()[:1])]

    with pytest.raises(RuntimeError, match=r"memory of the argument 'xs\[0\]'"):
        defined(swap)([rg.ones(2), rg.ones(2)])


def test_two_results_in_one_memory_are_refused():
    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        a = x.numpy() * 2
        return rg.as_tensor(a), rg.as_tensor(np.flip(a))

    with pytest.raises(RuntimeError, match="two results"):
        defined(twice)(rg.ones(2))


def test_honest_kernels_are_left_alone():
    def mix(xs: list[Tensor], w: Tensor | None, n: int) -> tuple[Tensor, int]:
        return rg.as_tensor(np.sum([x.numpy() for x in xs], 0) * n), len(xs)

    result, number = defined(mix)([rg.ones(2), rg.ones(2)], None, 3)
    assert (result.tolist(), number) == ([6, 6], 2)


def test_the_user_s_tensors_stay_writable():
    def double(x: Tensor) -> Tensor:
        return x * 2

    x = rg.ones(2)
    defined(double)(x)
    x.add_(1)
    assert x.numpy().flags.writeable
