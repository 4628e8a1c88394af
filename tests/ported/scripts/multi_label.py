"""Train a classifier of several labels with pos_weight and the focal loss, and count its metrics by topk."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

LABELS = np.array([[d % 2 == 0, d > 4, d in (2, 3, 5, 7), d in (0, 6, 8, 9)] for d in range(10)], dtype=np.float32)


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0, reduction="mean"):
        super().__init__()
        self.alpha, self.gamma, self.reduction = alpha, gamma, reduction

    def forward(self, inputs, targets):
        p = torch.sigmoid(inputs)
        ce_loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
        p_t = p * targets + (1 - p) * (1 - targets)
        loss = ce_loss * ((1 - p_t) ** self.gamma)
        if self.alpha >= 0:
            alpha_t = self.alpha * targets + (1 - self.alpha) * (1 - targets)
            loss = alpha_t * loss
        return loss.mean() if self.reduction == "mean" else loss


class AverageMeter(object):
    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        fmtstr = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
        return fmtstr.format(**self.__dict__)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size))
        return res


def confusion(pred, target, classes):
    return torch.bincount(classes * target + pred, minlength=classes**2).reshape(classes, classes)


def main(steps=5):
    rng = np.random.default_rng(9)
    digits = load_digits()
    x, digit = torch.from_numpy(digits.data[:640].astype("float32") / 16), torch.from_numpy(digits.target[:640])
    y = torch.from_numpy(LABELS)[digit]
    counts = torch.unique(digit, return_counts=True)[1]
    sampler = WeightedRandomSampler((1.0 / counts)[digit], num_samples=8, generator=torch.Generator())
    assert len(list(sampler)) == 8
    loader = DataLoader(TensorDataset(x, y, digit), batch_size=128)
    pos_weight = (y.size(0) - y.sum(dim=0)) / y.sum(dim=0)
    trunk = nn.Sequential(nn.Linear(64, 32), nn.SELU(), nn.AlphaDropout(p=0.0))
    heads = nn.ModuleDict({"labels": nn.Linear(32, 4), "digit": nn.Linear(32, 10)})
    model = nn.ModuleList([trunk, heads])
    for p in model.parameters():
        nn.init.constant_(p, 0.0)
        p.data.add_(torch.from_numpy(rng.normal(0, 0.15, p.size())).float())
    criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
    focal = FocalLoss()
    optimizer = torch.optim.Adamax(model.parameters(), lr=0.02)
    meters = [AverageMeter("Acc@1", ":6.2f"), AverageMeter("Acc@3", ":6.2f")]
    losses = []
    matrix = torch.zeros(10, 10, dtype=torch.int64)
    for step, (images, labels, target) in enumerate(loader):
        if step == steps:
            break
        h = trunk(images)
        logits, output = heads["labels"](h), heads["digit"](h)
        loss = criterion(logits, labels) + focal(logits, labels) + F.nll_loss(output.log_softmax(1), target)
        loss = loss + F.multilabel_soft_margin_loss(logits, labels)
        acc1, acc3 = accuracy(output, target, topk=(1, 3))
        meters[0].update(acc1[0].item(), images.size(0))
        meters[1].update(acc3[0].item(), images.size(0))
        matrix += confusion(output.argmax(1), target, 10)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    with torch.no_grad():
        scores = torch.sigmoid(heads["labels"](trunk(x)))
        predicted = (scores > 0.5).int()
        tp = (predicted & y.int()).sum(0)
        precision, recall = tp / predicted.sum(0).clamp(min=1), tp / y.sum(0)
        f1 = torch.nan_to_num(2 * precision * recall / (precision + recall))
        order = torch.argsort(scores[:, 0], descending=True, stable=True)
        hits = y[order, 0].cumsum(0) / torch.arange(1, len(y) + 1)
        average_precision = (hits * y[order, 0]).sum() / y[:, 0].sum()
    return losses, {
        "meters": [len(str(m)) for m in meters] + [m.avg for m in meters],
        "confusion": matrix.diag().tolist(),
        "f1": f1.tolist(),
        "average precision": average_precision.item(),
    }
