"""The older names for CUDA, in programs that run without a CUDA device."""

import pytest

import retrograd as rg
from retrograd.cuda.amp import GradScaler, autocast


def test_disabled_blocks_and_scalers_change_nothing():
    x = rg.ones(2, 2)
    with autocast(enabled=False):
        assert (x @ x).dtype == rg.float32
    assert rg.cuda.amp.GradScaler(enabled=False).scale(x) is x


def test_enabled_ones_warn_that_there_is_no_device():
    with pytest.warns(UserWarning, match="no device 'cuda'"):
        assert not GradScaler().is_enabled()
    with pytest.warns(UserWarning, match="no device 'cuda'"):
        autocast()
