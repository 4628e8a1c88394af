"""Scripts as users of `torch.compile` write them; each takes the function `compile`, and returns what it computes."""

import copy
import dataclasses
import functools
import itertools
import math
import types
from collections import OrderedDict
from typing import NamedTuple

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F

from .comparison import numbers


def model_of(*sizes, dropout=0.0):
    """Return a multilayer perceptron with the same numbers at each call."""
    rg.manual_seed(0)
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers[:-2])


def decorated_function(compile):
    @compile
    def f(x, y):
        return rg.sin(x) + rg.cos(y)

    return [f(numbers(3, seed=i), numbers(3, seed=i + 1)) for i in range(3)]


def decorator_with_arguments(compile):
    @compile(fullgraph=True, mode="reduce-overhead")
    def f(x):
        return F.gelu(x @ x.t()).sum(dim=-1)

    return [f(numbers(3, 4, seed=i)) for i in range(3)]


def other_backend(compile):
    f = compile(lambda x: x.exp() / x.exp().sum(), backend="eager")
    return [f(numbers(4, seed=i)) for i in range(3)]


def method_of_an_object(compile):
    class Scaler:
        def __init__(self, factor):
            self.factor = factor

        @compile
        def scale(self, x):
            return x * self.factor

    one, two = Scaler(2.0), Scaler(3.0)
    out = [s.scale(numbers(3, seed=i)) for i in range(2) for s in (one, two)]
    one.factor = 5.0
    return [*out, one.scale(numbers(3)), two.scale(numbers(3))]


def forward_method_of_a_module(compile):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.LayerNorm(4)

        @compile
        def forward(self, x):
            return self.b(x + F.silu(self.a(x)))

    rg.manual_seed(0)
    blocks = nn.ModuleList([Block(), Block()])
    x = numbers(2, 4)
    for block in blocks:
        x = block(x)
    x.sum().backward()
    return [x.detach(), *[p.grad for p in blocks.parameters()]]


def compiled_module(compile):
    model = model_of(4, 8, 2)
    compiled = compile(model)
    optimizer = rg.optim.SGD(compiled.parameters(), lr=0.1)
    losses = []
    for i in range(4):
        optimizer.zero_grad()
        loss = F.mse_loss(compiled(numbers(5, 4, seed=i)), numbers(5, 2, seed=i + 9))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [losses, [p.detach().clone() for p in model.parameters()]]


def module_compiled_in_place(compile):
    model = model_of(4, 8, 2)
    if compile is not eager:
        model.compile()
    return [model(numbers(3, 4, seed=i)).detach() for i in range(3)]


def closure_over_modules(compile):
    model, head = model_of(4, 8), nn.Linear(8, 1)
    nn.init.constant_(head.weight, 0.5)
    nn.init.zeros_(head.bias)

    def forward(x):
        return head(F.relu(model(x))).squeeze(-1)

    f = compile(forward)
    with rg.no_grad():
        out = [f(numbers(3, 4, seed=i)) for i in range(2)]
        head.bias.fill_(1.0)
        return [*out, f(numbers(3, 4))]


def whole_step_with_schedule_and_clipping(compile):
    model = model_of(4, 8, 2)
    optimizer = rg.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = rg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)

    @compile
    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        return loss.detach(), norm

    out = [step(numbers(6, 4, seed=i), rg.tensor([0, 1, 0, 1, 1, 0])) for i in range(5)]
    return [out, [p.detach() for p in model.parameters()], scheduler.get_last_lr()]


def step_with_schedule_outside(compile):
    model = model_of(4, 4, 1)
    optimizer = rg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = rg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    step = compile(optimizer.step)
    for i in range(5):
        optimizer.zero_grad()
        model(numbers(3, 4, seed=i)).square().mean().backward()
        step()
        scheduler.step()
    return [p.detach() for p in model.parameters()]


def gradient_accumulation(compile):
    model = model_of(4, 8, 2)
    optimizer = rg.optim.Adam(model.parameters(), lr=0.01)

    @compile
    def micro_step(x, y):
        loss = F.mse_loss(model(x), y) / 4
        loss.backward()
        return loss.detach()

    losses = []
    for i in range(8):
        losses.append(micro_step(numbers(2, 4, seed=i), numbers(2, 2, seed=i + 50)))
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
    return [losses, [p.detach() for p in model.parameters()]]


def accumulation_in_one_call(compile):
    model = model_of(4, 8, 2)
    optimizer = rg.optim.Adam(model.parameters(), lr=0.01)

    @compile
    def step(batches):
        optimizer.zero_grad()
        total = 0.0
        for x, y in batches:
            loss = F.mse_loss(model(x), y)
            (loss / len(batches)).backward()
            total = total + loss.detach()
        optimizer.step()
        return total

    def batches(i):
        return [(numbers(2, 4, seed=i + k), numbers(2, 2, seed=i - k + 50)) for k in range(3)]

    return [step(batches(i)) for i in range(4)]


def train_and_eval_mode(compile):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
    with rg.no_grad():
        for p in model.parameters():
            p.copy_(numbers(*p.shape))
    compiled = compile(model)
    rg.manual_seed(3)
    out = []
    for i in range(6):
        model.train(i % 3 != 2)
        out.append(compiled(numbers(5, 4, seed=i)).detach())
    return [out, model[1].running_mean, model[1].running_var, model[1].num_batches_tracked]


def dicts_and_lists_of_tensors(compile):
    @compile
    def f(batch, *, weights):
        out = OrderedDict()
        for name, x in batch.items():
            out[name] = sum(w * x for w in weights)
        return dict(out), [x.mean() for x in batch.values()]

    return [f({"a": numbers(3, seed=i), "b": numbers(2, seed=i)}, weights=[numbers(1), 2.0]) for i in range(3)]


class Batch(NamedTuple):
    """A batch."""

    inputs: rg.Tensor
    mask: rg.Tensor


def named_tuples(compile):
    @compile
    def f(batch):
        return Batch(batch.inputs.masked_fill(batch.mask, 0.0), ~batch.mask)

    out = [f(Batch(numbers(4, seed=i), numbers(4, seed=i + 1) > 0)) for i in range(3)]
    return [(type(o).__name__, o.inputs, o.mask) for o in out]


def methods_of_named_tuples(compile):
    @compile
    def f(batch):
        return batch._replace(inputs=batch.inputs * 2), batch._asdict()

    out = [f(Batch(numbers(4, seed=i), numbers(4, seed=i + 1) > 0)) for i in range(3)]
    return [(*new, fields) for new, fields in out]


def members_that_read_variables_around_the_class(compile):
    scale = [2.0]

    class Scaled:
        def __enter__(self):
            return scale[0]

        def __exit__(self, *exception):
            return None

        @property
        def factor(self):
            return scale[0]

        @staticmethod
        def shift():
            return scale[0]

        @classmethod
        def power(cls):
            return scale[0]

    scaled = Scaled()

    @compile
    def f(x):
        with scaled as entered:
            return (x * scaled.factor + scaled.shift()) ** Scaled.power() * entered

    out = [f(numbers(3))]
    scale[0] = 3.0
    return [*out, f(numbers(3))]


def item_in_the_middle(compile):
    @compile
    def f(x):
        y = x * 2
        scale = y.abs().max().item()
        return y / scale

    return [f(numbers(4, seed=i)) for i in range(3)]


def branch_on_a_value(compile):
    @compile
    def f(x):
        if x.sum() > 0:
            return x.sqrt().nan_to_num()
        return -x

    return [f(numbers(4, seed=i)) for i in range(4)]


def prints(compile):
    @compile
    def f(x):
        y = x + 1
        print("shape", tuple(y.shape))
        return y * 2

    return [f(numbers(2, seed=i)) for i in range(2)]


def disabled_function(compile):
    log = []

    @rg.compiler.disable
    def note(x):
        log.append(float(x.sum()))
        return x * 3

    @compile
    def f(x):
        return note(x.sin()) + 1

    return [[f(numbers(3, seed=i)) for i in range(3)], log]


def compiling_flag(compile):
    def f(x):
        return x * 2 if not rg.compiler.is_compiling() else x + x

    return [compile(f)(numbers(3, seed=i)) for i in range(3)]


def number_arguments(compile):
    @compile
    def f(x, power, scale=1.0, *, shift=0):
        return x.abs() ** power * scale + shift

    out = [f(numbers(3), p) for p in (1, 2, 2, 3, 0.5)]
    return [*out, f(numbers(3), 2, scale=0.5), f(numbers(3), 2, 0.5, shift=1), f(numbers(3), 2, shift=math.pi)]


def changing_batch_sizes(compile):
    model = model_of(4, 8, 2)
    f = compile(model, dynamic=True)
    return [f(numbers(n, 4, seed=n)).detach() for n in (3, 5, 7, 2, 9, 3, 11, 13, 17, 19, 1)]


def early_return_by_configuration(compile):
    class Config:
        normalize = True
        layers = 2

    @compile
    def f(x):
        for _ in range(Config.layers):
            x = x.tanh()
        if Config.normalize:
            x = F.normalize(x, dim=0)
        return x

    out = [f(numbers(4))]
    Config.normalize = False
    out.append(f(numbers(4)))
    Config.layers = 3
    return [*out, f(numbers(4))]


def weights_averaged_by_hand(compile):
    model = model_of(4, 4, 1)
    average = copy.deepcopy(model)

    @compile
    @rg.no_grad()
    def update(decay):
        for p, q in zip(average.parameters(), model.parameters(), strict=True):
            p.lerp_(q, 1 - decay)

    out = []
    for i in range(3):
        with rg.no_grad():
            for p in model.parameters():
                p.add_(float(i))
        update(0.9)
        out.append([p.detach().clone() for p in average.parameters()])
    return out


def functional_transforms(compile):
    def loss(w, x):
        return (x @ w).tanh().square().sum()

    per_sample = compile(rg.func.vmap(rg.func.grad(loss), in_dims=(None, 0)))
    hessian = compile(rg.func.hessian(loss))
    w = numbers(3)
    return [per_sample(w, numbers(4, 3, seed=i)) for i in range(2)] + [hessian(w, numbers(3, seed=i)) for i in range(2)]


def functional_call_with_parameters(compile):
    model = model_of(3, 4, 1)

    @compile
    def f(parameters, x):
        return rg.func.functional_call(model, parameters, (x,))

    out = []
    for i in range(3):
        parameters = {name: p.detach() * i for name, p in model.named_parameters()}
        out.append(f(parameters, numbers(2, 3, seed=i)))
    return out


def autograd_grad_inside(compile):
    @compile
    def penalty(x, w):
        w = w.detach().requires_grad_()
        out = (x * w).sin().sum()
        (g,) = rg.autograd.grad(out, w, create_graph=True)
        return rg.autograd.grad(g.square().sum(), w)[0]

    return [penalty(numbers(3, seed=i), numbers(3, seed=i + 1)) for i in range(3)]


def no_grad_inside(compile):
    @compile
    def f(x, w):
        with rg.no_grad():
            scale = x.abs().max()
        return x / scale * w

    w = numbers(3).requires_grad_()
    out = []
    for i in range(3):
        y = f(numbers(3, seed=i), w)
        y.sum().backward()
        out.append((y.detach(), w.grad.clone()))
    return out


def in_place_on_arguments(compile):
    @compile
    def f(cache, x, position):
        cache[position] = x
        cache[position] += 1
        return cache[: position + 1].sum(0)

    cache = rg.zeros(4, 3)
    return [[f(cache, numbers(3, seed=i), i) for i in range(4)], cache]


def recurrent_loop(compile):
    rg.manual_seed(0)
    cell = nn.GRUCell(3, 4)

    @compile
    def run(sequence):
        h = rg.zeros(2, 4)
        states = []
        for x in sequence.unbind(0):
            h = cell(x, h)
            states.append(h)
        return rg.stack(states)

    cell.requires_grad_(False)
    return [run(numbers(5, 2, 3, seed=i)) for i in range(3)]


def random_augmentation(compile):
    @compile
    def f(x):
        noise = rg.randn_like(x) * 0.1
        keep = rg.rand(x.shape) > 0.2
        return rg.where(keep, x + noise, 0.0), F.dropout(x, 0.5)

    rg.manual_seed(7)
    return [f(numbers(5, seed=i)) for i in range(3)] + [rg.rand(1)]


def custom_function_inside_a_step(compile):
    class Clip(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x, limit):
            ctx.save_for_backward(x)
            ctx.limit = limit
            return x.clamp(-limit, limit)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x.abs() < ctx.limit) + 0.1 * g, None

    w = numbers(3).requires_grad_()
    optimizer = rg.optim.SGD([w], lr=0.1)

    @compile
    def step(x):
        optimizer.zero_grad()
        loss = Clip.apply(w * x, 1.0).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return [[step(numbers(3, seed=i)) for i in range(4)], w.detach()]


def custom_function_with_a_graph_outside(compile):
    class Double(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 20

    w = numbers(3).requires_grad_()
    f = compile(lambda x: Double.apply(w * x).sin())
    out = []
    for i in range(4):
        w.grad = None
        f(numbers(3, seed=i)).sum().backward()
        out.append(w.grad)
    return out


def mixed_precision(compile):
    model = model_of(4, 8, 2)

    @compile
    def f(x):
        with rg.autocast("cpu", dtype=rg.bfloat16):
            return model(x).float()

    with rg.no_grad():
        return [f(numbers(3, 4, seed=i)) for i in range(3)]


def cached_helper(compile):
    @functools.lru_cache
    def positions(n):
        return rg.arange(n, dtype=rg.float32) / n

    @compile
    def f(x):
        return x + positions(x.shape[0])

    return [f(numbers(4, seed=i)) for i in range(3)]


def checkpointed(compile):
    model = model_of(4, 8, 8, 2)

    @compile
    def f(x):
        hidden = rg.utils.checkpoint.checkpoint(model[0], x, use_reentrant=False)
        return model[1:](hidden)

    out = []
    for i in range(3):
        model.zero_grad()
        f(numbers(3, 4, seed=i)).square().sum().backward()
        out.append([p.grad for p in model.parameters()])
    return out


def masked_selection(compile):
    @compile
    def f(x):
        picked = x[x > 0]
        return picked.sum() / max(picked.numel(), 1)

    return [f(numbers(6, seed=i)) for i in range(3)]


def exceptions_and_asserts(compile):
    @compile
    def f(x, n):
        assert x.ndim == 2, "two dimensions"
        if n < 0:
            raise ValueError("negative")
        return x[:n]

    out = []
    for i, n in enumerate([1, 2, -1, 2]):
        try:
            out.append(f(numbers(3, 2, seed=i), n))
        except ValueError as error:
            out.append(str(error))
    return out


def state_dict_loaded_between_calls(compile):
    model = model_of(3, 3)
    f = compile(model)
    with rg.no_grad():
        out = [f(numbers(2, 3))]
        model.load_state_dict({name: p * 2 for name, p in model.state_dict().items()})
        return [*out, f(numbers(2, 3)), f(numbers(2, 3))]


def frozen_layers(compile):
    model = model_of(3, 4, 2)

    @compile
    def step(x):
        model.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        return loss.detach()

    out = []
    for i in range(6):
        model[0].weight.requires_grad_(i < 2 or i > 3)
        loss = step(numbers(2, 3, seed=i))
        out.append((loss, [None if p.grad is None else p.grad.clone() for p in model.parameters()]))
    return out


class PositionTable(nn.Module):
    """A module that fills a cache at its first call."""

    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        """Add the positions."""
        if self.table is None or self.table.shape[0] < x.shape[0]:
            self.table = rg.arange(x.shape[0], dtype=x.dtype).sin()
        return x + self.table[: x.shape[0]]


def cache_that_the_first_call_fills(compile):
    module = PositionTable()
    f = compile(module)
    return [f(numbers(n)) for n in (4, 4, 3, 4, 3)]


@dataclasses.dataclass
class Sample:
    """The arguments of a call as one object."""

    x: rg.Tensor
    scale: float = 1.0

    def scaled(self):
        """Return the product."""
        return self.x * self.scale


def dataclasses_as_arguments(compile):
    @compile
    def f(sample):
        return sample.scaled() + 1

    return [f(Sample(numbers(3, seed=i), scale)) for i, scale in enumerate((1.0, 1.0, 2.0))]


def dataclass_as_result(compile):
    @compile
    def f(x):
        return Sample(x * 2, 0.5)

    return [vars(f(numbers(3, seed=i))) for i in range(3)]


def module_of_settings(compile):
    settings = types.ModuleType("settings")
    settings.scale, settings.bias = 2.0, rg.ones(3)
    f = compile(lambda x: x * settings.scale + getattr(settings, "bias", 0.0))
    out = [f(numbers(3))]
    settings.scale = 3.0
    out.append(f(numbers(3)))
    del settings.bias
    return [*out, f(numbers(3))]


def class_of_settings_as_attribute(compile):
    class Config:
        scale = 2.0

    class Model(nn.Module):
        config = Config

        def forward(self, x):
            return x * self.config.scale + getattr(self.config, "shift", 0.0)

    f = compile(Model())
    out = [f(numbers(3))]
    Config.scale = 3.0
    out.append(f(numbers(3)))
    Config.shift = 1.0
    return [*out, f(numbers(3))]


def eager(model=None, **settings):
    """Return the function itself, with the parameters of `compile`."""
    return (lambda function: function) if model is None else model


RUN_EAGERLY = {checkpointed, item_in_the_middle, branch_on_a_value, prints, disabled_function, masked_selection}
SCRIPTS = [
    value
    for value in list(globals().values())
    if isinstance(value, types.FunctionType) and value.__module__ == __name__ and value not in (eager, model_of)
]
