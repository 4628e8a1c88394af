"""Fourier transforms: inverse pairs, dtypes, sizes, frequencies and refused arguments."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend import fourier
from retrograd.testing import assert_close


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize(("there", "back"), [("fft", "ifft"), ("rfft", "irfft"), ("ihfft", "hfft")])
@pytest.mark.parametrize("n", [5, 6])
def test_inverses_undo_each_other(there, back, norm, n, rng):
    x = rg.tensor(rng.normal(size=(2, n)))
    spectrum = getattr(rg.fft, there)(x, norm=norm)
    again = getattr(rg.fft, back)(spectrum, n=n, norm=norm)
    assert_close(again.real.numpy(), x.numpy(), atol=1e-12)


@pytest.mark.parametrize(("there", "back"), [("fft", "ifft"), ("rfft", "irfft"), ("ihfft", "hfft")])
@pytest.mark.parametrize("many", ["2", "n"])
def test_inverses_over_several_dimensions_undo_each_other(there, back, many, rng):
    x = rg.tensor(rng.normal(size=(3, 4, 5)))
    dims = {"dim": (0, 2)}
    again = getattr(rg.fft, back + many)(getattr(rg.fft, there + many)(x, **dims), s=(3, 5), **dims)
    assert_close(again.real.numpy(), x.numpy(), atol=1e-12)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "rfft2"])
@pytest.mark.parametrize("scipy", [True, False])
def test_single_precision_gives_the_numbers_of_double_precision(name, scipy, rng, monkeypatch):
    if not scipy:
        monkeypatch.setattr(fourier, "scipy_fft", lambda: None)
    x = rg.tensor(rng.normal(size=(60, 70)), dtype="float32")
    out, wide = getattr(rg.fft, name)(x, norm="ortho"), getattr(rg.fft, name)(x.double(), norm="ortho")
    assert out.dtype == ("complex64" if wide.is_complex() else "float32")
    assert_close(out.numpy(), wide.numpy().astype(out.numpy().dtype), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("float32", "complex64"),
        ("float64", "complex128"),
        ("complex64", "complex64"),
        ("int64", "complex64"),
        ("bool", "complex64"),
    ],
)
def test_precision_is_that_of_the_input_and_integers_become_the_default(given, expected):
    assert rg.fft.fft(rg.ones(4, dtype=given)).dtype == expected


@pytest.mark.parametrize("name", ["irfft", "hfft"])
def test_real_results_keep_the_precision(name):
    assert getattr(rg.fft, name)(rg.ones(3, dtype="complex64")).dtype == np.float32
    assert getattr(rg.fft, name)(rg.ones(3)).dtype == np.float32


def test_sizes_trim_or_pad_with_zeros():
    x = rg.tensor([1.0, 2.0, 3.0])
    assert_close(rg.fft.fft(x, 2), rg.fft.fft(rg.tensor([1.0, 2.0])))
    assert_close(rg.fft.fft(x, 4), rg.fft.fft(rg.tensor([1.0, 2.0, 3.0, 0.0])))


def test_gradients_by_numbers_that_are_trimmed_are_zero():
    x = rg.ones(4, requires_grad=True)
    assert rg.autograd.grad(rg.fft.rfft(x, 2).real.sum(), x)[0].tolist() == [2.0, 0.0, 0.0, 0.0]


def test_without_dimensions_nothing_is_transformed():
    assert rg.fft.fftn(rg.tensor([1.0, 2.0]), dim=()).tolist() == [1, 2]


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies_are_those_of_numpy(n):
    assert_close(rg.fft.fftfreq(n, 0.5, dtype="float64").numpy(), np.fft.fftfreq(n, 0.5))
    assert_close(rg.fft.rfftfreq(n, 0.5, dtype="float64").numpy(), np.fft.rfftfreq(n, 0.5))
    assert rg.fft.fftfreq(n).dtype == np.float32


def test_shifts_put_frequency_zero_in_the_middle_and_back():
    frequencies = rg.fft.fftfreq(5)
    shifted = rg.fft.fftshift(frequencies)
    assert shifted.tolist() == sorted(frequencies.tolist())
    assert rg.fft.ifftshift(shifted).tolist() == frequencies.tolist()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: rg.fft.rfft(rg.ones(3, dtype="complex64")), RuntimeError, "fft.rfft: expected real numbers"),
        (lambda: rg.fft.fft(rg.ones(3), 0), RuntimeError, "fft.fft: .*no transform of 0 numbers"),
        (lambda: rg.fft.irfft(rg.ones(1)), RuntimeError, "fft.irfft: .*no transform of 0 numbers"),
        (lambda: rg.fft.fftn(rg.ones(3), s=(2, 2)), RuntimeError, "fft.fftn: 2 sizes are given for a tensor of 1"),
        (lambda: rg.fft.fft2(rg.ones(3, 3), s=(2,)), RuntimeError, "fft.fft2: 1 sizes are given for 2 dimensions"),
        (lambda: rg.fft.rfftn(rg.ones(3), dim=()), RuntimeError, "fft.rfftn: at least one dimension"),
        (lambda: rg.fft.fft2(rg.ones(3, 3), dim=(0, 0)), ValueError, "fft.fft2: .*a dimension is named twice"),
        (lambda: rg.fft.fft(rg.ones(3, dtype="float16")), RuntimeError, "fft.fft: no transform of float16"),
    ],
)
def test_operators_without_a_rule_for_the_transform_are_refused_by_name(call, error, said):
    with pytest.raises(error, match=said):
        call()
