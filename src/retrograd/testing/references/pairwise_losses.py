"""Reference implementations of losses with margins, of pairs, counts and sequences: loops over the definitions."""

from itertools import groupby, product

import numpy as np

from retrograd.testing.references.common import FINISH


def distance(a, b, p=2, eps=1e-6):
    return (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)


def triplet(anchor, positive, negative, margin, swap, reduction, d=distance):
    far = d(anchor, negative)
    far = np.minimum(far, d(positive, negative)) if swap else far
    return FINISH[reduction](np.maximum(d(anchor, positive) - far + margin, 0))


def triplet_margin_with_distance_loss(anchor, positive, negative, distance_function, margin, swap, reduction):
    d = distance if distance_function is None else lambda a, b: np.abs(a - b).sum(-1)
    return triplet(anchor, positive, negative, margin, swap, reduction, d)


def cosine_embedding_loss(input1, input2, target, margin, reduction):
    cosine = (input1 * input2).sum(-1) / np.sqrt((input1**2).sum(-1) * (input2**2).sum(-1))
    return FINISH[reduction](np.where(target == 1, 1 - cosine, np.maximum(0, cosine - margin)))


def multi_margin_loss(x, target, weight, p, margin, reduction):
    losses = []
    for row, y in zip(np.atleast_2d(x), np.atleast_1d(target), strict=True):
        gaps = [max(0, margin - row[y] + v) ** p for i, v in enumerate(row) if i != y]
        losses.append(sum(gaps) / len(row) * (1 if weight is None else weight[y]))
    return FINISH[reduction](np.array(losses).reshape(target.shape))


def multilabel_margin_loss(x, target, reduction):
    losses = []
    for row, places in zip(np.atleast_2d(x), np.atleast_2d(target), strict=True):
        labels = [*places, -1]
        labels = labels[: labels.index(-1)]
        gaps = [max(0, 1 - row[y] + v) for y in labels for i, v in enumerate(row) if i not in labels]
        losses.append(sum(gaps) / len(row))
    return FINISH[reduction](np.array(losses).reshape(x.shape[:-1]))


def multilabel_soft_margin_loss(x, target, weight, reduction):
    p = 1 / (1 + np.exp(-x))
    loss = -(target * np.log(p) + (1 - target) * np.log(1 - p)) * (1 if weight is None else weight)
    return FINISH[reduction](loss.mean(-1))


def poisson_nll_loss(x, target, log_input, full, eps, reduction):
    mean = np.exp(x) if log_input else x
    loss = mean - target * np.log(mean + (0 if log_input else eps))
    stirling = target * np.log(target) - target + 0.5 * np.log(2 * np.pi * target)
    return FINISH[reduction](loss + np.where(target > 1, stirling, 0) * full)


def gaussian_nll_loss(x, target, var, full, eps, reduction):
    var = np.maximum(var if var.ndim == x.ndim else var[..., None], eps)
    return FINISH[reduction](0.5 * (np.log(2 * np.pi if full else 1) + np.log(var) + (x - target) ** 2 / var))


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """Return the sum over all paths through the classes that spell the target."""
    alone = log_probs.ndim == 2
    log_probs = log_probs[:, None] if alone else log_probs
    ends = np.cumsum(target_lengths)
    costs = []
    for i, (steps, length) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        wanted = targets[ends[i] - length : ends[i]] if targets.ndim == 1 else targets[i][:length]
        chance = 0.0
        for way in product(range(log_probs.shape[2]), repeat=steps):
            if [c for c, _ in groupby(way) if c != blank] == wanted.tolist():
                chance += np.exp(sum(log_probs[t, i, c] for t, c in enumerate(way)))
        costs.append(-np.log(chance) if chance else 0 if zero_infinity else np.inf)
    costs = np.array(costs) / (np.maximum(target_lengths, 1) if reduction == "mean" else 1)
    return FINISH[reduction](costs[0] if alone else costs)


def margin_ranking_loss(input1, input2, target, margin, reduction):
    return FINISH[reduction](np.maximum(0, -target * (input1 - input2) + margin))


def hinge_embedding_loss(x, target, margin, reduction):
    return FINISH[reduction](np.where(target == 1, x, np.maximum(0, margin - x)))


def soft_margin_loss(x, target, reduction):
    return FINISH[reduction](np.log(1 + np.exp(-target * x)))


def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction):
    return triplet(anchor, positive, negative, margin, swap, reduction, lambda a, b: distance(a, b, p, eps))
