"""Reference implementations of losses of classes, by their definitions."""

import numpy as np

from retrograd.testing.references.common import FINISH, softmax


def one_hot(target, classes, ignore_index):
    """Return one-hot rows of classes, zeros for ignored ones."""
    return np.eye(classes)[target] * (target != ignore_index)[..., None]


def class_loss(x, target, ignore_index):
    return -(np.log(softmax(x, -1)) * one_hot(target, x.shape[-1], ignore_index)).sum(-1)


def mean_class_loss(x, target, ignore_index):
    return class_loss(x, target, ignore_index).sum() / (target != ignore_index).sum()


def class_residual(x, target, ignore_index):
    return (softmax(x, -1) - one_hot(target, x.shape[-1], ignore_index)) * (target != ignore_index)[..., None]


def class_gather(x, target, ignore_index):
    return (x * one_hot(target, x.shape[-1], ignore_index)).sum(-1)


def nll_loss(x, target, weight, ignore_index, reduction):
    x = np.moveaxis(x, min(1, x.ndim - 1), -1)
    chosen = one_hot(target, x.shape[-1], ignore_index) * (1 if weight is None else weight)
    loss = -(x * chosen).sum(-1)
    return loss.sum() / chosen.sum() if reduction == "mean" else FINISH[reduction](loss)


def cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing):
    x = np.moveaxis(x, min(1, x.ndim - 1), -1)
    classes, weight = x.shape[-1], np.ones(x.shape[-1]) if weight is None else weight
    logs = np.log(softmax(x, -1))
    if target.dtype.kind == "f":
        wanted = np.moveaxis(target, min(1, target.ndim - 1), -1)
        share = wanted * (1 - label_smoothing) + label_smoothing / classes
        return FINISH[reduction](-(logs * share * weight).sum(-1))
    chosen = one_hot(target, classes, ignore_index)
    share = chosen * (1 - label_smoothing) + (target != ignore_index)[..., None] * label_smoothing / classes
    loss = -(logs * share * weight).sum(-1)
    return loss.sum() / (chosen * weight).sum() if reduction == "mean" else FINISH[reduction](loss)


def linear_cross_entropy(
    x, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing, options
):  # fmt: skip
    logits = np.tensordot(x, linear_weight, (-1, -1)) + (0 if linear_bias is None else linear_bias)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignored, reduction, label_smoothing)


def class_grad(t, x, target, ignore_index):
    return t[..., None] * class_residual(x, target, ignore_index)


def class_scatter(src, target, classes, ignore_index):
    return src[..., None] * one_hot(target, classes, ignore_index)


def mean_class_grad(t, x, target, ignore_index):
    return t * class_residual(x, target, ignore_index) / (target != ignore_index).sum()
