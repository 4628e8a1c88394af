"""Histograms and counting: edges, weights, ignored values, dtypes."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close


def test_weights_of_integers_are_differentiable():
    w = rg.tensor([1.0, 2.0, 4.0], requires_grad=True)
    out = rg.bincount(rg.tensor([1, 2, 1]), w)
    assert (out.tolist(), out.dtype) == ([0, 5, 2], np.float32)
    assert rg.autograd.grad((out * rg.tensor([9.0, 3.0, 7.0])).sum(), w)[0].tolist() == [3, 7, 3]


def test_integers_that_weigh_weigh_in_float64_and_without_weights_counts_are_integers():
    x = rg.tensor([1, 2, 1])
    assert rg.bincount(x, rg.tensor([1, 2, 4])).dtype == np.float64
    assert rg.bincount(x).dtype == np.int64
    assert rg.bincount(x, minlength=5).shape == (5,)


def test_the_last_bin_has_its_right_edge_and_what_is_outside_counts_nowhere():
    x = rg.tensor([0.0, 1.0, 2.0, 3.0, -1.0, math.nan])
    assert rg.histc(x, 2, min=0, max=2).tolist() == [1, 2]
    assert rg.histogram(x, 2, range=(0.0, 2.0)).hist.tolist() == [1, 2]
    assert rg.histogram(x, rg.tensor([0.0, 1.0, 2.0])).hist.tolist() == [1, 2]


def test_equal_elements_are_in_the_middle_bin():
    assert rg.histc(rg.tensor([1.0, 1.0]), 5).tolist() == [0, 0, 2, 0, 0]
    assert rg.histc(rg.tensor([]), 3).tolist() == [0, 0, 0]


def test_without_a_finite_range_there_are_no_bins():
    for call in (lambda x: rg.histc(x, 3), lambda x: rg.histogram(x, 3)):
        with pytest.raises(ValueError, match="histogram: bins from nan to nan are not finite"):
            call(rg.tensor([1.0, math.nan]))


def test_a_density_integrates_to_1():
    x, w = rg.tensor([1.0, 2.0, 1.5]), rg.tensor([1.0, 2.0, 4.0])
    hist, edges = rg.histogram(x, rg.tensor([0.0, 1.2, 3.0]), weight=w, density=True)
    assert_close((hist * rg.diff(edges)).sum().numpy(), np.float32(1))
    assert hist.dtype == edges.dtype == np.float32


def test_histograms_of_points_count_boxes():
    x = rg.tensor([[1.0, 2.0], [0.0, 0.0]])
    for bins in (2, [2, 2], [rg.tensor([0.0, 0.5, 1.0]), rg.tensor([0.0, 1.0, 2.0])]):
        hist, edges = rg.histogramdd(x, bins)
        assert hist.tolist() == [[1, 0], [0, 1]]
        assert [e.tolist() for e in edges] == [[0, 0.5, 1], [0, 1, 2]]
    ranged = rg.histogramdd(x, [1, 2], range=[0.0, 1.0, -1.0, 3.0], weight=rg.tensor([1.0, 5.0]))
    assert (ranged.hist.tolist(), ranged.bin_edges[1].tolist()) == ([[5, 1]], [-1, 1, 3])


def test_points_need_bins_for_each_column():
    with pytest.raises(ValueError, match=r"histogramdd: expected a matrix with a column per bins, got shape \(2, 2\)"):
        rg.histogramdd(rg.ones(2, 2), [2, 2, 2])


def test_of_nothing_the_bins_are_from_0_to_1():
    assert rg.histogram(rg.zeros(0), 2).bin_edges.tolist() == [0.0, 0.5, 1.0]


def test_stacks_of_points_count_as_one(rng):
    x, weight = rg.tensor(rng.normal(size=(2, 3, 2))), rg.tensor(rng.uniform(size=(2, 3)))
    hist, _ = rg.histogramdd(x, [2, 3], weight=weight)
    flat = rg.histogramdd(x.reshape(-1, 2), [2, 3], weight=weight.reshape(-1))
    assert_close(hist, flat.hist)
    with pytest.raises(ValueError, match=r"histogramdd: weight has shape \(6,\), but there are \(2, 3\) points"):
        rg.histogramdd(x, [2, 3], weight=weight.reshape(-1))
