"""rearrange splits, permutes and joins dimensions; batch norms lose their running statistics."""

import pytest

import retrograd as rg
from retrograd import nn


@pytest.mark.parametrize(
    ("pattern", "lengths", "expected"),
    [
        ("b c -> c b", {}, [[0, 3], [1, 4], [2, 5]]),
        ("b c -> (c b)", {}, [0, 3, 1, 4, 2, 5]),
        ("b (c d) -> d b c", {"d": 1}, [[[0, 1, 2], [3, 4, 5]]]),
        ("... c -> c (...)", {}, [[0, 3], [1, 4], [2, 5]]),
        ("b c -> b 1 c ()", {}, [[[[0], [1], [2]]], [[[3], [4], [5]]]]),
    ],
)
def test_axes_are_arranged_as_the_pattern_says(pattern, lengths, expected):
    assert rg.func.rearrange(rg.arange(6).reshape(2, 3), pattern, **lengths).tolist() == expected


@pytest.mark.parametrize(
    ("pattern", "lengths", "message"),
    [
        ("b c -> b", {}, "only on one side"),
        ("b (c d) -> b c d", {}, r"all but one of \['c', 'd'\]"),
        ("b (c d) -> b c d", {"c": 2}, "dimension of size 3 can't be split"),
        ("b 1 -> b", {}, "dimension of size 3 can't be split into"),
    ],
)
def test_patterns_that_do_not_fit_are_refused(pattern, lengths, message):
    with pytest.raises(ValueError, match=message):
        rg.func.rearrange(rg.ones(2, 3), pattern, **lengths)


def test_batch_norms_use_the_batch_after_their_statistics_are_removed():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm1d(2)), nn.InstanceNorm1d(2))
    assert rg.func.replace_all_batch_norm_modules_(model) is model
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    x = rg.tensor([[1.0, 2.0], [3.0, 6.0]])
    out = model.eval()[0](x)
    assert rg.allclose(out.mean(0), rg.zeros(2), atol=1e-6)
