"""DLPack: memory is exchanged with NumPy, PyTorch and JAX without copies."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import retrograd as rg

DTYPES = ["float32", "float64", "int64", "uint8", "bool", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", [np.from_dlpack, torch.from_dlpack], ids=["numpy", "torch"])
def test_others_see_what_is_written_here(other, dtype):
    ours = rg.zeros(2, 3, dtype=getattr(rg, dtype))
    theirs = other(ours.t())
    ours[0, 1] = 1
    assert tuple(theirs.shape) == (3, 2)
    assert theirs[1, 0] == 1
    assert str(theirs.dtype).removeprefix("torch.") == dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "make", [np.zeros, lambda *a, dtype: torch.zeros(*a, dtype=getattr(torch, dtype))], ids=["numpy", "torch"]
)
def test_writes_of_the_other_library_are_visible_here(make, dtype):
    theirs = make((2, 3), dtype=dtype)
    ours = rg.from_dlpack(theirs.T)
    theirs[0, 1] = 1
    assert ours.shape == (3, 2)
    assert ours[1, 0] == 1
    assert str(ours.dtype) == dtype


def test_jax_arrays_share_memory_both_ways():
    theirs = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    ours = rg.from_dlpack(theirs)
    assert ours.numpy().ctypes.data == theirs.unsafe_buffer_pointer()
    mine = rg.zeros(64 + 16)  # JAX copies arrays that are not aligned to 64 bytes
    start = -mine.numpy().ctypes.data % 64 // 4
    mine = mine[start : start + 6].reshape(2, 3)
    assert jnp.from_dlpack(mine).unsafe_buffer_pointer() == mine.numpy().ctypes.data


@pytest.mark.parametrize("other", [np.from_dlpack, torch.from_dlpack, jnp.from_dlpack], ids=["numpy", "torch", "jax"])
def test_gradients_are_not_lost_silently(other):
    with pytest.raises(BufferError, match="requires grad"):
        other(rg.ones(2, requires_grad=True))
    assert other(rg.ones(2, requires_grad=True).detach()).shape == (2,)


def test_a_nested_tensor_has_no_one_shape_to_hand_over():
    with pytest.raises((BufferError, TypeError, ValueError, RuntimeError)):
        torch.from_dlpack(rg.nested.nested_tensor([[1.0], [1.0, 2.0]]))


def test_capsules_are_exchanged():
    ours = rg.arange(3.0)
    assert torch.from_dlpack(rg.to_dlpack(ours)).mul_(2).tolist() == ours.tolist() == [0, 2, 4]
    theirs = torch.arange(3.0)
    shared = rg.from_dlpack(torch.utils.dlpack.to_dlpack(theirs))
    theirs.add_(1)
    assert shared.tolist() == [1, 2, 3]
