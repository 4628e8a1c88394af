"""Conversions of packed sequences."""

import pytest

import retrograd as rg
from retrograd.nn.utils.rnn import pack_sequence


@pytest.fixture
def packed():
    return pack_sequence([rg.ones(1, 2), rg.ones(3, 2)], enforce_sorted=False)


def test_conversions_change_the_rows_and_keep_the_order(packed):
    names = {"double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16", "char": "int8"}
    for method, dtype in {**names, "byte": "uint8", "float": "float32"}.items():
        converted = getattr(packed, method)()
        assert str(converted.data.dtype) == dtype
        assert converted.sorted_indices.tolist() == packed.sorted_indices.tolist()
    assert packed.to("meta").unsorted_indices.device == "meta"


def test_a_conversion_to_what_it_is_returns_the_same(packed):
    assert packed.to(rg.float32) is packed.cpu() is packed.float() is packed
    assert not packed.is_cuda
    assert not packed.is_pinned()
    for name, words in {"pin_memory": "no accelerator", "cuda": "(?i)cuda"}.items():
        with pytest.raises(RuntimeError, match=words):
            getattr(packed, name)()
