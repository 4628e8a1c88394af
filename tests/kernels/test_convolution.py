"""C++ convolutions agree with the NumPy reference, for any shape, layout and number of threads."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels
from retrograd.kernels import chosen, reference
from retrograd.kernels.conv_layout import plan_of

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

# Images, output channels, groups, taps, stride, padding, dilation, size of the output.
FORMS = {
    "plain": ((2, 3, 1, 9, 11), 5, 1, (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1), (1, 9, 11)),
    "one place": ((1, 1, 1, 1, 1), 1, 1, (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), (1, 1, 1)),
    "strides, dilations, groups": ((3, 4, 1, 12, 9), 6, 2, (1, 3, 2), (1, 2, 3), (0, 1, 2), (1, 3, 2), (1, 4, 4)),
    "by channel": ((2, 17, 1, 10, 10), 17, 17, (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1), (1, 10, 10)),
    "three dimensions": ((2, 2, 4, 5, 6), 9, 1, (2, 3, 1), (2, 1, 1), (1, 1, 0), (1, 2, 1), (2, 3, 6)),
    "one long row": ((1, 2, 1, 1, 2500), 33, 1, (1, 1, 4), (1, 1, 1), (0, 0, 3), (1, 1, 1), (1, 1, 2503)),
    "many places": ((1, 5, 1, 70, 45), 3, 1, (1, 2, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1), (1, 69, 44)),
    "many images": ((19, 2, 1, 4, 4), 40, 1, (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1), (1, 4, 4)),
    "many in groups": ((37, 6, 1, 5, 7), 15, 3, (1, 3, 2), (1, 2, 1), (0, 1, 1), (1, 1, 2), (1, 3, 7)),
    "many, three dimensions": ((70, 2, 3, 2, 3), 9, 1, (2, 1, 3), (1, 1, 2), (1, 0, 1), (1, 1, 1), (4, 2, 2)),
    "many, one place": ((50, 3, 1, 1, 1), 17, 1, (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), (1, 1, 1)),
    "many channels": ((1, 61, 1, 7, 7), 70, 1, (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), (1, 7, 7)),
    "much work": ((9, 16, 1, 20, 20), 24, 1, (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1), (1, 20, 20)),
    "padding beyond the kernel": ((2, 1, 1, 3, 3), 2, 1, (1, 1, 2), (1, 1, 1), (0, 7, 4), (1, 1, 1), (1, 12, 10)),
}
each_form = pytest.mark.parametrize("form", FORMS)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


class Case:
    """Images, weight, bias, and the cotangent of the output."""

    def __init__(self, form, dtype=np.float32):
        images, outs, self.groups, taps, stride, before, dilation, size = FORMS[form]
        r = np.random.default_rng(0)
        self.plan = plan_of(images[2:], taps, size, stride, before, dilation)
        per = images[1] // self.groups
        shapes = (images, (self.groups, outs // self.groups, per, *taps), (outs,), (images[0], outs, *size))
        self.x, self.w, self.bias, self.y = (r.standard_normal(shape).astype(dtype) for shape in shapes)

    def windows(self, module):
        out = np.empty_like(self.y)
        module.sum_windows(self.plan, self.x, self.w, self.bias, out)
        return out

    def weight_sums(self, module):
        out = np.empty((self.y.shape[1], *self.w.shape[2:]), self.x.dtype)
        module.conv_weight_sums(self.plan, self.x, self.y, out, self.groups)
        return out


def close(got, expected):
    tolerance = 2e-6 if expected.dtype == np.float32 else 4e-15
    scale = np.abs(expected).max(initial=1, where=np.isfinite(expected))
    np.testing.assert_allclose(got, expected, rtol=10 * tolerance, atol=10 * tolerance * scale)


@each_form
@each_dtype
def test_windows_are_summed_as_by_the_reference(form, dtype):
    case = Case(form, dtype)
    close(case.windows(chosen), case.windows(reference))


@each_form
@each_dtype
def test_sums_of_windows_are_those_of_the_reference(form, dtype):
    case = Case(form, dtype)
    close(case.weight_sums(chosen), case.weight_sums(reference))


@each_form
def test_weights_and_results_may_have_gaps_and_negative_strides(form):
    case = Case(form)
    expected = case.windows(reference)
    apart = np.full((*case.y.shape[:4], 2 * case.y.shape[4]), 7, np.float32)
    case.w = np.asfortranarray(case.w[..., ::-1, ::-1])[..., ::-1, ::-1]
    chosen.sum_windows(case.plan, case.x, case.w, case.bias, apart[..., ::2])
    close(apart[..., ::2], expected)
    assert (apart[..., 1::2] == 7).all()


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 3e38, 1e-42])
def test_one_odd_number_affects_the_windows_that_contain_it_only(number):
    case = Case("plain")
    case.x[1, 2, 0, 4, 5] = number
    case.w[...] = np.sign(case.w)
    case.y[...] = np.sign(case.y)
    with np.errstate(all="ignore"):
        close(case.windows(chosen), case.windows(reference))
        close(case.weight_sums(chosen), case.weight_sums(reference))


@each_form
def test_any_number_of_threads_gives_the_same_digits(form):
    case, before = Case(form), rg.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            rg.set_num_threads(threads)
            found.append((case.windows(chosen), case.weight_sums(chosen)))
    finally:
        rg.set_num_threads(before)
    for windows, weight_sums in found[1:]:
        np.testing.assert_array_equal(windows, found[0][0])
        np.testing.assert_array_equal(weight_sums, found[0][1])


def test_there_may_be_no_bias():
    case = Case("plain")
    case.bias = None
    close(case.windows(chosen), case.windows(reference))
