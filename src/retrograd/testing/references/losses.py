"""Reference implementations of losses, by their definitions."""

import numpy as np

from retrograd.testing.references.common import FINISH, sigmoid


def weight_and_reduce(loss, weight, reduction):
    return FINISH[reduction](loss if weight is None else loss * weight)


def over_weights(loss, weight, reduction):
    total = weight_and_reduce(loss, weight, reduction)
    return total if weight is None or reduction != "mean" else total / np.mean(weight)


def huber(x, target, reduction, edge, height, weight=None):
    d = np.abs(x - target)
    return weight_and_reduce(np.where(d < edge, 0.5 * d * d, edge * (d - 0.5 * edge)) * height, weight, reduction)


def bernoulli_loss(x, target):
    return -target * np.log(x) - (1 - target) * np.log(1 - x)


def kl_div(x, target, reduction, log_target):
    p, log_p = (np.exp(target), target) if log_target else (target, np.log(target))
    return FINISH[reduction](p * (log_p - x))


def mse_loss(x, target, weight, reduction):
    return over_weights((x - target) ** 2, weight, reduction)


def l1_loss(x, target, weight, reduction):
    return over_weights(np.abs(x - target), weight, reduction)


def smooth_l1_loss(x, target, reduction, beta):
    return huber(x, target, reduction, beta, 1 / beta)


def huber_loss(x, target, weight, reduction, delta):
    return huber(x, target, reduction, delta, 1, weight)


def binary_cross_entropy(x, target, weight, reduction):
    return weight_and_reduce(bernoulli_loss(x, target), weight, reduction)


def binary_cross_entropy_with_logits(x, target, weight, pos_weight, reduction):
    return weight_and_reduce(
        -(1 if pos_weight is None else pos_weight) * target * np.log(sigmoid(x)) - (1 - target) * np.log(sigmoid(-x)),
        weight,
        reduction,
    )
