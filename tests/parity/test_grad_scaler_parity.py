"""The scale of a GradScaler compared with PyTorch: the same bits after growth and backoff by any factors."""

import torch

import retrograd as rg


def run(library):
    """Return the scale and the parameters after each of some steps, one in three of which has infinite gradients."""
    scaler = library.amp.GradScaler(
        "cpu", init_scale=3.3, growth_factor=1.1, backoff_factor=0.3, growth_interval=1
    )  # fmt: skip
    w = library.ones(2, requires_grad=True)
    optimizer, seen = library.optim.SGD([w], lr=0.1), []
    for i in range(9):
        optimizer.zero_grad()
        loss = (w * w).sum() * (float("inf") if i % 3 == 2 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), w.tolist()))
    return seen


def test_the_scale_has_the_bits_of_pytorch():
    assert run(rg) == run(torch)


def test_a_scaled_loss_in_float16_is_a_float32_number():
    for library in (torch, rg):
        loss = library.ones((), dtype=library.float16)
        assert library.amp.GradScaler("cpu").scale(loss).dtype == library.float32
