"""Define an operator with a list of tensors, an optional tensor and a number as arguments, and a non-tensor result.

    python examples/custom_ops/list_inputs.py

The operator blends images: it returns the weighted mean of those with a nonzero weight, and their number. The schema
declares the types: `Tensor[]` is a list, `Tensor?` may be None, and the result is a tuple of a tensor and an int.

This uses the older API, `custom_op` without `mutates_args`: the decorated function only declares the operator, and
`impl` and other methods register the rest. The gradient formula has two parts: `impl_save_for_backward` returns the
values to save, tensors or not, in any nesting; `impl_backward` returns a dict with the gradient of each tensor
argument, and a list for a list. The dict is checked: a missing key or a list that is too short raises an error with
the line of the formula.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.autograd import gradcheck


@rg.library.custom_op("examples::blend", "(Tensor[] images, Tensor? weights, float gain=1.0) -> (Tensor, int)")
def blend(images: list[rg.Tensor], weights: rg.Tensor | None, gain: float = 1.0) -> tuple[rg.Tensor, int]:
    """Return `gain` times the weighted mean of the images (default: equal weights), and how many were used."""
    raise NotImplementedError  # the kernel below runs


def shares(weights: rg.Tensor | None, count: int) -> np.ndarray:
    return np.full(count, 1 / count) if weights is None else weights.numpy()


@blend.impl("cpu")
def kernel(images: list[rg.Tensor], weights: rg.Tensor | None, gain: float = 1.0) -> tuple[rg.Tensor, int]:
    blended, used = np.zeros(images[0].shape, images[0].numpy().dtype), 0
    for image, share in zip(images, shares(weights, len(images)), strict=True):
        if share:  # images without weight are not read
            blended += gain * share * image.numpy()
            used += 1
    return rg.as_tensor(blended), used


@blend.impl_abstract()
def like(images: list[rg.Tensor], weights: rg.Tensor | None, gain: float = 1.0) -> tuple[rg.Tensor, int]:
    return rg.empty_like(images[0]), len(images)


@blend.impl_save_for_backward()
def save(inputs: Any, output: tuple) -> dict:
    """Save the images only if the formula needs them, for the gradient of the weights."""
    weights = shares(inputs.weights, len(inputs.images)).tolist() if inputs.weights is None else inputs.weights
    return {"images": inputs.images if inputs.weights is not None else None, "weights": weights, "gain": inputs.gain}


@blend.impl_backward(output_differentiability=[True, False])
def backward(ctx: Any, saved: dict, g: rg.Tensor, used: None) -> dict:
    """Compute the gradients with operators, so that higher derivatives and forward mode follow."""
    of_images = [saved["gain"] * w * g for w in saved["weights"]]
    of_weights = None
    if saved["images"] is not None:
        of_weights = saved["gain"] * rg.stack([(g * image).sum() for image in saved["images"]])
    return {"images": of_images, "weights": of_weights}


# --------------------------------------------------------------------------------------------------- the problem


def weights_of(photograph: rg.Tensor, images: Sequence[rg.Tensor], rounds: int = 200) -> rg.Tensor:
    """Return the weights that blend the images into the photograph, found with Adam."""
    weights = rg.full((len(images),), 1 / len(images), dtype=rg.float64, requires_grad=True)
    optimizer = rg.optim.Adam([weights], lr=0.05)
    for _ in range(rounds):
        optimizer.zero_grad()
        blended, _ = blend(list(images), weights)
        ((blended - photograph) ** 2).mean().backward()
        optimizer.step()
    return weights.detach()


def main() -> None:
    rg.manual_seed(0)
    check()
    images = [rg.rand(8, 8, dtype=rg.float64) for _ in range(3)]
    photograph, used = blend(images, rg.tensor([0.7, 0.0, 0.3], dtype=rg.float64))
    print(f"a blend of {used} of {len(images)} images")
    print("its weights, recovered:", [round(w, 2) for w in weights_of(photograph, images).tolist()])


def samples() -> list[tuple]:
    """Return arguments for the checks and for `retrograd check examples/custom_ops/list_inputs.py:blend`."""
    images = [rg.rand(2, 3, dtype=rg.float64, requires_grad=True) for _ in range(3)]
    return [(images, rg.rand(3, dtype=rg.float64, requires_grad=True), 2.0), (images, None)]


def check() -> None:
    """Check the operator: derivatives against finite differences, and the declared behavior."""
    for inputs in samples():
        print("gradcheck", gradcheck(lambda *a: blend(*a)[0], inputs, check_forward_ad=True))
        print("opcheck", set(rg.library.opcheck(blend, inputs).values()))


if __name__ == "__main__":
    main()
