"""Layers followed by operators that write to their results, as networks are usually written."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F

from ..case_groups import group_cases

IMAGES = {1: (4, 6, 5), 2: (4, 6, 5, 3), 3: (4, 6, 3, 2, 2)}
NORMS = {
    **{f"BatchNorm{d}d": (lambda d=d: getattr(nn, f"BatchNorm{d}d")(6), IMAGES[d]) for d in IMAGES},
    "BatchNorm1d of rows": (lambda: nn.BatchNorm1d(6), (8, 6)),
    "BatchNorm2d without affine": (lambda: nn.BatchNorm2d(6, affine=False), IMAGES[2]),
    **{f"InstanceNorm{d}d": (lambda d=d: getattr(nn, f"InstanceNorm{d}d")(6), IMAGES[d]) for d in IMAGES},
    "InstanceNorm2d with affine": (lambda: nn.InstanceNorm2d(6, affine=True), IMAGES[2]),
    "GroupNorm": (lambda: nn.GroupNorm(3, 6), IMAGES[2]),
    "GroupNorm without affine": (lambda: nn.GroupNorm(2, 6, affine=False), IMAGES[1]),
    "LayerNorm": (lambda: nn.LayerNorm(5), (4, 6, 5)),
    "RMSNorm": (lambda: nn.RMSNorm(5), (4, 6, 5)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), IMAGES[2]),
}
WRITES = {
    "ReLU": lambda y, x: nn.ReLU(inplace=True)(y),
    "ELU": lambda y, x: nn.ELU(inplace=True)(y),
    "SiLU": lambda y, x: nn.SiLU(inplace=True)(y),
    "sum": lambda y, x: y.__iadd__(x),
    "product": lambda y, x: y.mul_(x),
    "nothing": lambda y, x: y.zero_() + x * x,
}
PLAIN = {
    "ReLU": lambda y, x: F.relu(y),
    "ELU": lambda y, x: F.elu(y),
    "SiLU": lambda y, x: F.silu(y),
    "sum": lambda y, x: y + x,
    "product": lambda y, x: y * x,
    "nothing": lambda y, x: y * 0 + x * x,
}


def gradients(layer, after, shape):
    """Return gradients of the input and the parameters, for one layer and the operators after it."""
    x = rg.randn(shape, generator=rg.Generator().manual_seed(1), requires_grad=True)
    y = after(layer(x * 1), x)
    (y * y).sum().backward()
    return [x.grad, *(p.grad for p in layer.parameters())]


@group_cases
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("norm", NORMS)
def test_results_of_norms_may_be_written_to(norm, write):
    make, shape = NORMS[norm]
    found, expected = (gradients(make(), table[write], shape) for table in (WRITES, PLAIN))
    for f, e in zip(found, expected, strict=True):
        assert (f is None) == (e is None)
        assert f is None or rg.allclose(f, e, rtol=1e-5, atol=1e-6)


class Block(nn.Module):
    """A residual block that writes in place wherever possible, or nowhere."""

    def __init__(self, inplace):
        super().__init__()
        self.inplace = inplace
        self.conv1, self.bn1 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=inplace)

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.inplace:
            out += x
        else:
            out = out + x
        return self.relu(out)


def trained(inplace):
    """Return the losses of a few steps of a small residual network."""
    rg.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace), nn.MaxPool2d(2), Block(inplace), Block(inplace),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1, inplace), nn.Linear(4, 3),
    )  # fmt: skip
    x, target = rg.randn(6, 3, 8, 8), rg.tensor([0, 1, 2, 0, 1, 2])
    optimizer, losses = rg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for _ in range(8):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_residual_network_that_writes_trains_like_one_that_does_not():
    losses = trained(True)
    assert losses == pytest.approx(trained(False), rel=1e-4)
    assert losses[-1] < 0.7 * losses[0]


def test_logits_and_results_of_attention_may_be_overwritten_once_the_loss_is_known():
    logits, target = rg.randn(3, 4, requires_grad=True), rg.tensor([0, 3, 1])
    copy = logits * 1
    loss = F.cross_entropy(copy, target)
    with rg.no_grad():
        copy.copy_(copy.softmax(-1))
    loss.backward()
    assert logits.grad.equal(rg.autograd.grad(F.cross_entropy(logits, target), logits)[0])
    q, k, v = (rg.randn(2, 5, 4, requires_grad=True) for _ in range(3))
    out = F.scaled_dot_product_attention(q, k, v)
    expected = rg.autograd.grad((out * 2).sum(), (q, k, v), retain_graph=True)
    out *= 2
    assert all(rg.allclose(f, e) for f, e in zip(rg.autograd.grad(out.sum(), (q, k, v)), expected, strict=True))
