"""Steps as people write them, each a few lines in the style of public examples, with how a compiled call of it runs.

The code of a step makes `step(x, y)`; `net()` is a model with the same numbers each time, `opt(model)` its optimizer.
"""

WHOLE, PARTS, EAGER = "whole", "in parts", "eagerly"

PREAMBLE = """
import collections, contextlib, dataclasses, functools, itertools, math
from typing import NamedTuple
import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F
def net(*sizes):
    rg.manual_seed(0)
    sizes = sizes or (3, 8, 3)
    layers = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*layers[:-1])
def opt(*models, kind=rg.optim.SGD):
    return kind([p for model in models for p in model.parameters()], lr=0.1)
model = net()
optimizer = opt(model)
def train(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

STEPS = {
    # ------------------------------------------------------------------------------- state that steps replace
    "a hidden state as an attribute": (WHOLE, """
class Agent:
    def __init__(self):
        self.cell, self.hidden = nn.RNNCell(3, 3), rg.zeros(4, 3)
        nn.init.constant_(self.cell.weight_ih, 0.1)
        nn.init.constant_(self.cell.weight_hh, 0.2)
    def step(self, x, y):
        self.hidden = self.cell(x, self.hidden.detach())
        return self.hidden.sum().detach()
step = Agent().step
"""),
    "a running mean as an attribute": (WHOLE, """
class Stats:
    def __init__(self): self.avg = rg.zeros(3)
    def step(self, x, y):
        self.avg = self.avg * 0.9 + x.mean(0) * 0.1
        return x - self.avg
step = Stats().step
"""),
    "a running mean as a buffer": (WHOLE, """
class Stats(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("avg", rg.zeros(3))
    def forward(self, x, y):
        self.avg.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return x - self.avg
step = Stats()
"""),
    "a buffer that is replaced": (WHOLE, """
class Stats(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("avg", rg.zeros(3))
    def forward(self, x, y):
        self.avg = self.avg * 0.9 + x.detach().mean(0) * 0.1
        return x - self.avg
step = Stats()
"""),
    "a target network, updated by a loop": (WHOLE, """
target = net()
def step(x, y):
    with rg.no_grad():
        wanted = target(y)
    loss = F.mse_loss(model(x), wanted)
    train(loss)
    with rg.no_grad():
        for p, q in zip(target.parameters(), model.parameters()):
            p.mul_(0.9).add_(q, alpha=0.1)
    return loss.detach()
"""),
    "a target network, updated by lerp_ in a decorated function": (WHOLE, """
target = net()
@rg.no_grad()
def update():
    for p, q in zip(target.parameters(), model.parameters()):
        p.lerp_(q, 0.1)
def step(x, y):
    loss = F.mse_loss(model(x), target(y).detach())
    train(loss)
    update()
    return loss.detach()
"""),
    "a target network, updated through data": (WHOLE, """
target = net()
def step(x, y):
    loss = F.mse_loss(model(x), target(y).detach())
    train(loss)
    for p, q in zip(target.parameters(), model.parameters()):
        p.data.copy_(0.9 * p.data + 0.1 * q.data)
    return loss.detach()
"""),
    "parameters whose data is replaced": (WHOLE, """
def step(x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    for p in model.parameters():
        p.data = p.data - 0.1 * p.grad
        p.grad = None
    return loss.detach()
"""),
    "gradients whose data is replaced": (WHOLE, """
def step(x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    for p in model.parameters():
        p.grad.data = p.grad.data.clamp(-0.01, 0.01)
    optimizer.step()
    return loss.detach()
"""),
    "an argument whose data is replaced": (WHOLE, """
def step(x, y):
    x.data = y + 1
    y.data = x.data
    x.mul_(2)
    return x * 2, y * 1
"""),
    "two models that exchange their data": (WHOLE, """
target = net()
def step(x, y):
    loss = F.mse_loss(model(x), y)
    train(loss)
    for p, q in zip(model.parameters(), target.parameters()):
        q.data.mul_(0.9).add_(p.data, alpha=0.1)
        kept = p.data
        p.data = q.data
        q.data = kept
    return loss.detach(), model(x).detach(), target(x).detach()
"""),
    "two models that come to share their data": (WHOLE, """
target = net()
def step(x, y):
    loss = F.mse_loss(model(x), y)
    train(loss)
    for p, q in zip(model.parameters(), target.parameters()):
        q.data = p.data
        p.data.mul_(0.9)
    return loss.detach(), target(y).detach()
"""),
    "memory that a parameter has left": (WHOLE, """
def step(x, y):
    bias = model[0].bias
    before = bias.data
    bias.data = bias.data * 2
    with rg.no_grad():
        bias.add_(1)
    before.mul_(3)
    return before * 1, bias.detach() * 1
"""),
    "data that is replaced, and a result of a graph": (EAGER, """
def step(x, y):
    model[0].bias.data = model[0].bias.data * 0.9
    return model(x)
"""),
    "a detached tensor of memory that a parameter has left": (EAGER, """
def step(x, y):
    before = model[0].bias.detach()
    model[0].bias.data = model[0].bias.data * 2
    return before
"""),
    "an optimizer that is made at each call": (PARTS, """
def step(x, y):
    fresh = rg.optim.Adam(model.parameters(), lr=0.1)
    loss = F.mse_loss(model(x), y)
    loss.backward()
    fresh.step()
    fresh.zero_grad()
    return loss.detach()
"""),
    "the version of a parameter": (PARTS, """
def step(x, y):
    with rg.no_grad():
        model[0].bias.mul_(0.9)
    return model(x).detach(), model[0].bias._version
"""),
    "an averaged model": (WHOLE, """
averaged = rg.optim.swa_utils.AveragedModel(model)
def step(x, y):
    loss = F.mse_loss(model(x), y)
    train(loss)
    averaged.update_parameters(model)
    return loss.detach()
"""),
    "a counter": (WHOLE, """
class Trainer:
    count = 0
    def step(self, x, y):
        self.count += 1
        loss = F.mse_loss(model(x), y)
        train(loss)
        return loss.detach()
step = Trainer().step
"""),
    "counters and histories in dicts": (WHOLE, """
class Trainer:
    def __init__(self):
        self.history, self.counts = {"loss": [], "norm": []}, collections.defaultdict(int)
    def step(self, x, y):
        self.counts["steps"] += 1
        self.counts["seen"] += len(x)
        loss = F.mse_loss(model(x), y)
        train(loss)
        self.history["loss"].append(loss.detach())
        self.history["norm"].extend([model[0].weight.detach().norm(), x.norm()])
        return loss.detach()
step = Trainer().step
"""),
    "the latest losses": (WHOLE, """
latest = collections.deque(maxlen=4)
def step(x, y):
    loss = F.mse_loss(model(x), y)
    train(loss)
    latest.append(loss.detach())
    return loss.detach()
"""),
    "a buffer of earlier batches": (WHOLE, """
replay = collections.deque([rg.zeros(4, 3), rg.ones(4, 3)])
def step(x, y):
    replay.append(x * 1)
    old = replay.popleft()
    loss = F.mse_loss(model(old), y)
    train(loss)
    return loss.detach()
"""),
    "the latest numbers of a dict": (WHOLE, """
info = {}
def step(x, y):
    loss = F.mse_loss(model(x), y)
    train(loss)
    info.update(loss=loss.detach(), mean=x.mean())
    return info["mean"] + info.setdefault("first", y.mean())
"""),
    # ------------------------------------------------------------------------------------- parts of the library
    "a checkpoint": (WHOLE, """
from retrograd.utils.checkpoint import checkpoint
def step(x, y):
    loss = F.mse_loss(checkpoint(model, x, use_reentrant=False), y)
    train(loss)
    return loss.detach()
"""),
    "saved tensors in another dtype": (PARTS, """
def step(x, y):
    with rg.autograd.graph.saved_tensors_hooks(lambda t: (t.dtype, t.half()), lambda pair: pair[1].to(pair[0])):
        loss = F.mse_loss(model(x), y)
    train(loss)
    return loss.detach()
"""),
    "a checkpoint with dropout": (WHOLE, """
from retrograd.utils.checkpoint import checkpoint
layers = nn.Sequential(model, nn.Dropout(0.5))
def step(x, y):
    z = x.sin() * 2
    loss = F.mse_loss(checkpoint(layers, z, use_reentrant=False), y)
    train(loss)
    return loss.detach()
"""),
    "autocast inside": (WHOLE, """
def step(x, y):
    with rg.autocast("cpu", dtype=rg.bfloat16):
        out = model(x)
        loss = F.mse_loss(out, y)
    train(loss)
    return loss.detach()
"""),
    "a scaler of gradients": (WHOLE, """
scaler = rg.amp.GradScaler("cpu", init_scale=16.0)
def step(x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()
"""),
    "hooks of parameters": (WHOLE, """
for p in model.parameters():
    p.register_hook(lambda grad: grad.clamp(-0.01, 0.01))
def step(x, y):
    loss = F.mse_loss(model(x), y)
    train(loss)
    return loss.detach()
"""),
    "hooks after accumulation": (WHOLE, """
def halve(p): p.grad.mul_(0.5)
for p in model.parameters():
    p.register_post_accumulate_grad_hook(halve)
def step(x, y):
    loss = F.mse_loss(model(x), y)
    train(loss)
    return loss.detach()
"""),
    "accumulated gradients": (WHOLE, """
def step(x, y):
    optimizer.zero_grad()
    for a, b in zip(x.split(2), y.split(2)):
        (F.mse_loss(model(a), b) / 2).backward()
    optimizer.step()
    return [p.detach().clone() for p in model.parameters()]
"""),
    "a schedule": (WHOLE, """
schedule = rg.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
def step(x, y):
    loss = F.mse_loss(model(x), y)
    train(loss)
    schedule.step()
    return loss.detach()
"""),
    "a penalty of gradients": (WHOLE, """
def step(x, y):
    x = x.detach().requires_grad_()
    (slope,) = rg.autograd.grad(model(x).sum(), x, create_graph=True)
    loss = F.mse_loss(model(x), y) + slope.square().mean()
    train(loss)
    return loss.detach()
"""),
    "two optimizers": (WHOLE, """
critic = net(3, 4, 1)
second = opt(critic, kind=rg.optim.Adam)
def step(x, y):
    optimizer.zero_grad()
    second.zero_grad()
    fake = model(y)
    (critic(fake.detach()) - critic(x)).mean().backward()
    second.step()
    (-critic(fake).mean()).backward()
    optimizer.step()
    return fake.detach()
"""),
    "per-example gradients": (WHOLE, """
from retrograd.func import functional_call, grad, vmap
def loss_of(params, a, b): return F.mse_loss(functional_call(model, params, (a[None],)), b[None])
def step(x, y):
    params = {name: p.detach() for name, p in model.named_parameters()}
    return vmap(grad(loss_of), in_dims=(None, 0, 0))(params, x, y)
"""),
    # ------------------------------------------------------------------------------------------------- results
    "a dict": (WHOLE, "def step(x, y):\n    return {'loss': F.mse_loss(model(x), y).detach(), 'size': len(x)}"),
    "an ordered dict": (WHOLE, "def step(x, y):\n    return collections.OrderedDict(a=x * 2, b=y + 1)"),
    "a deque": (WHOLE, "def step(x, y):\n    return collections.deque([x * 2, y + 1])"),
    "a named tuple": (WHOLE, """
class Out(NamedTuple):
    loss: object
    size: int
def step(x, y):
    return Out(F.mse_loss(x, y), len(x))
"""),
    "a dataclass": (WHOLE, """
@dataclasses.dataclass
class Out:
    loss: object
    size: int
def step(x, y):
    return Out(F.mse_loss(x, y), len(x))
"""),
    "a dataclass with slots": (WHOLE, """
@dataclasses.dataclass(slots=True)
class Out:
    loss: object
def step(x, y):
    return Out(F.mse_loss(x, y))
"""),
    "an ordered dict with attributes": (WHOLE, """
@dataclasses.dataclass
class Out(collections.OrderedDict):
    loss: object = None
    def __post_init__(self): self["loss"] = self.loss
def step(x, y):
    out = Out(F.mse_loss(x, y))
    return out
"""),
    "a number": (PARTS, "def step(x, y):\n    loss = F.mse_loss(model(x), y)\n    train(loss)\n    return loss.item()"),
    # ------------------------------------------------------------------------------------------ forms of Python
    "a cached property": (WHOLE, """
class Config:
    @functools.cached_property
    def scale(self): return math.sqrt(4.0)
config = Config()
def step(x, y):
    return x * config.scale
"""),
    "try and finally": (WHOLE, """
def step(x, y):
    model.eval()
    try:
        out = model(x * 2) + y
    finally:
        model.train()
    return out.detach()
"""),
    "a context manager that sets the mode": (WHOLE, """
@contextlib.contextmanager
def evaluating(module):
    was = module.training
    module.eval()
    try:
        yield module
    finally:
        module.train(was)
layers = nn.Sequential(model, nn.Dropout(0.5))
def step(x, y):
    with evaluating(layers) as m, rg.no_grad():
        wanted = m(y)
    loss = F.mse_loss(layers(x), wanted)
    train(loss)
    return loss.detach()
"""),
    "a context manager that freezes parameters": (WHOLE, """
class Frozen:
    def __init__(self, module): self.module = module
    def __enter__(self): self.module.requires_grad_(False)
    def __exit__(self, *exception): self.module.requires_grad_(True)
def step(x, y):
    with Frozen(model[0]):
        loss = F.mse_loss(model(x), y)
    train(loss)
    return loss.detach()
"""),
    "try and except around a step": (WHOLE, """
def step(x, y):
    try:
        loss = F.mse_loss(model(x), y)
        train(loss)
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        return None
    return loss.detach()
"""),
    "a key that a dict may not have": (WHOLE, """
cache = {}
def step(x, y):
    try:
        last = cache["last"]
    except KeyError:
        last = y
    cache["last"] = x * 2
    return last + y
"""),
    "try and except around an index": (PARTS, """
table = rg.arange(12.0).view(4, 3)
def step(x, y):
    z = x.sin() * 2
    try:
        z = z + table[x.argmax(0)][:1]
    except IndexError:
        z = z + 1
    return z * y
"""),
    "assert": (WHOLE, """
def step(x, y):
    assert x.shape == y.shape, f"{x.shape} and {y.shape}"
    assert x.ndim == 2
    return (x * y).sum()
"""),
    "f-strings of shapes": (WHOLE, "def step(x, y):\n    return x * 2, f'{tuple(x.shape)} {x.dtype} {len(y):03d}'"),
    "arguments by keyword only": (WHOLE, """
def scaled(x, /, *rest, scale=2.0, **more):
    return x * scale + sum(rest) + more.get("shift", 0.0)
def step(x, y):
    return scaled(x, y, y, scale=3.0, shift=1.0)
"""),
    "a generator": (WHOLE, """
def rows(x):
    for row in x:
        yield row * 2
def step(x, y):
    return sum(rows(x)), [row + 1 for row in rows(y)]
"""),
    "comprehensions": (WHOLE, """
def step(x, y):
    named = {name: p.detach().norm() for name, p in model.named_parameters()}
    return named, rg.stack([row * i for i, row in enumerate(x)]), sum(v.sum() for v in (x, y))
"""),
    "a with statement of grad modes": (WHOLE, """
def step(x, y):
    with rg.no_grad():
        a = model(x)
    with rg.enable_grad(), rg.set_grad_enabled(True):
        b = model(y)
    train(F.mse_loss(b, a))
    return a
"""),
    "a lock": (PARTS, """
import threading
lock = threading.Lock()
def step(x, y):
    with lock:
        z = x.sin() * 2
    return z * y
"""),
    "a mark that nothing was given": (WHOLE, """
NOTHING = object()
def scaled(x, scale=NOTHING): return x if scale is NOTHING else x * scale
def step(x, y):
    return scaled(x) + scaled(y, 2.0)
"""),
    "reduce and partial": (WHOLE, """
double = functools.partial(rg.mul, other=2.0)
def step(x, y):
    return functools.reduce(lambda a, b: a + b, map(double, (x, y)))
"""),
    "imports inside": (WHOLE, """
def step(x, y):
    import math
    from os import path
    if len(x) > 100:
        import not_installed
    return x * math.pi
"""),
    "the first import of a module": (PARTS, """
import sys
def step(x, y):
    sys.modules.pop("colorsys", None)
    import colorsys
    return x.sin() * colorsys.ONE_THIRD
"""),
    "the signature of a function": (WHOLE, """
import inspect
def f(x, scale=2.0): return x * scale
def step(x, y):
    return f(x.sin()) * inspect.signature(f).parameters["scale"].default
"""),
    "a check against an abstract class": (WHOLE, """
import collections.abc
def step(x, y):
    pair = (x, y)
    return x * 2 if isinstance(pair, collections.abc.Sequence) else y
"""),
    "star arguments": (WHOLE, """
def step(*args):
    x, *rest = args
    return rg.cat([x, *rest]), max(len(a) for a in args)
"""),
    "a while loop": (WHOLE, """
def step(x, y):
    i = 0
    while i < 3:
        x, i = x.sin() + y, i + 1
    return x
"""),
    "match": (WHOLE, """
kind = "double"
def step(x, y):
    match kind:
        case "double": return x * 2
        case _: return y
"""),
    "a branch on a shape": (WHOLE, "def step(x, y):\n    return x.sum(1) if x.shape[0] > 3 else y"),
    "a branch on a value": (PARTS, """
def step(x, y):
    z = x.sin() * 2
    if z.sum() > 0:
        z = z + y.cos()
    return z * 3
"""),
    "print": (PARTS, "def step(x, y):\n    z = x.sin() + 1\n    print('step', end='')\n    return z.cos() * y"),
    "a mask": (PARTS, "def step(x, y):\n    z = x.sin() * 2\n    kept = z[z > 0]\n    return kept.sum() * y.cos()"),
    "a list that is kept": (WHOLE, """
losses = []
def step(x, y):
    loss = F.mse_loss(model(x), y)
    train(loss)
    losses.append(loss.detach())
    return losses[-1] * 2
"""),
    "a list of losses": (WHOLE, """
def step(x, y):
    losses = []
    for a, b in zip(x, y):
        losses.append(F.l1_loss(a, b))
    return sum(losses) / len(losses)
"""),
    "attention written out": (WHOLE, """
def step(x, y):
    q, k, v = (x @ y.mT).softmax(-1), y.mT, x
    mask = rg.ones(4, 4, dtype=rg.bool).tril()
    return q.masked_fill(~mask, 0.0) @ v, rg.einsum("ij,jk->ik", x, k)
"""),
    "numbers from tensors outside": (PARTS, "def step(x, y):\n    n = int((x > 0).sum())\n    return x.sin() * n + y"),
}  # fmt: skip
