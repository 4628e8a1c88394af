"""Training code as people write it: methods and helper functions that read values, print, count and keep lists.

Each function returns one that takes a batch, and the modules whose parameters it trains.
"""

import contextlib
import copy
import functools
import math

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F


def network():
    """Return a model with the same numbers at each call, and its optimizer."""
    rg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 3))
    return model, rg.optim.Adam(model.parameters(), lr=0.1)


def batches(x, y):
    return zip(x.split(2), y.split(2), strict=True)


class Trainer:
    """Counts its steps, and notes the loss of every third one."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.steps, self.history = 0, []

    def loss(self, x, y):
        return F.mse_loss(self.model(x), y)

    def train_step(self, x, y):
        self.steps += 1
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        if self.steps % 3 == 0:
            self.log("loss", loss.item())
        return loss.detach()

    def log(self, name, value):
        self.history.append((name, self.steps, value))

    def train_epoch(self, x, y):
        total = 0.0
        for a, b in batches(x, y):
            total += self.train_step(a, b).item()
        return total, list(self.history)


def trainer_class():
    model, optimizer = network()
    return Trainer(model, optimizer).train_epoch, [model]


class Module(nn.Module):
    """A module with the hooks of a training loop around it."""

    def __init__(self):
        super().__init__()
        self.layers, _ = network()
        self.logged = {}

    def forward(self, x):
        return self.layers(x)

    def log(self, name, value):
        self.logged.setdefault(name, []).append(float(value))

    def training_step(self, batch, index):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("right", (self(x).argmax(1) == y.argmax(1)).float().mean())

    def configure_optimizers(self):
        return rg.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def lightning_loop():
    module = Module()
    optimizer = module.configure_optimizers()

    def optimize(batch, index):
        optimizer.zero_grad()
        loss = module.training_step(batch, index)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def fit(x, y):
        module.train()
        losses = [optimize(batch, i) for i, batch in enumerate(batches(x, y))]
        module.eval()
        with rg.no_grad():
            for i, batch in enumerate(batches(x, y)):
                module.validation_step(batch, i)
        return losses, copy.deepcopy(module.logged)

    return fit, [module]


def adversarial_networks():
    generator, generator_optimizer = network()
    critic, critic_optimizer = network()

    def critic_step(real, noise):
        critic_optimizer.zero_grad()
        fake = generator(noise).detach()
        loss = critic(fake).mean() - critic(real).mean()
        loss.backward()
        critic_optimizer.step()
        return loss.item()

    def generator_step(noise):
        generator_optimizer.zero_grad()
        loss = -critic(generator(noise)).mean()
        loss.backward()
        generator_optimizer.step()
        return loss.item()

    def step(x, y):
        losses = [critic_step(x, y) for _ in range(2)]
        return losses, generator_step(y)

    return step, [generator, critic]


class Early:
    """Stops when the loss has not fallen for some calls."""

    def __init__(self, patience):
        self.best, self.waited, self.patience = math.inf, 0, patience

    def __call__(self, loss):
        if loss < self.best:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


def early_stopping():
    model, optimizer = network()
    stopper = Early(2)

    def validate(x, y):
        model.eval()
        with rg.no_grad():
            loss = F.mse_loss(model(x), y)
        model.train()
        return loss.item()

    def train(x, y):
        for i in range(4):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            if stopper(validate(x, y)):
                return "stopped", i
        return stopper.best, stopper.waited

    return train, [model]


def clips_and_reports():
    model, optimizer = network()
    reported = []

    def clip(limit):
        norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
        if norm > limit:
            reported.append(norm.item())
        return norm

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y) * 3
        loss.backward()
        norm = clip(0.5)
        optimizer.step()
        return loss.detach(), norm * 2, list(reported)

    return step, [model]


class Average:
    """Averages the parameters of a model."""

    def __init__(self, model, decay):
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.decay, self.updates = decay, 0

    @rg.no_grad()
    def update(self, model):
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for name, p in model.named_parameters():
            self.shadow[name].mul_(decay).add_(p, alpha=1 - decay)


def averaged_weights():
    model, optimizer = network()
    average = Average(model, 0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        average.update(model)
        return loss.item(), [p.clone() for p in average.shadow.values()]

    return step, [model]


def mixed_precision():
    model, optimizer = network()
    scaler = rg.amp.GradScaler("cpu", init_scale=16.0, growth_interval=2)

    def forward(x, y):
        with rg.autocast("cpu", dtype=rg.bfloat16):
            out = model(x)
        loss = F.mse_loss(out.float(), y)
        if not math.isfinite(loss.item()):
            raise FloatingPointError
        return loss

    def step(x, y):
        optimizer.zero_grad()
        loss = forward(x, y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach(), scaler.get_scale()

    return step, [model]


class Meter:
    """The mean of numbers."""

    def __init__(self):
        self.total = self.count = 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n

    @property
    def mean(self):
        return self.total / max(self.count, 1)


def validation_with_meters():
    model, _ = network()

    @rg.no_grad()
    def evaluate(data):
        model.eval()
        losses, right = Meter(), Meter()
        for x, y in data:
            out = model(x)
            losses.update(F.mse_loss(out, y).item(), len(x))
            right.update((out.argmax(1) == y.argmax(1)).float().mean().item(), len(x))
        return losses.mean, right.mean

    return (lambda x, y: evaluate(batches(x, y))), [model]


class Progress:
    """A bar around a loop, with numbers behind it."""

    def __init__(self, members):
        self.members, self.shown = members, []

    def __iter__(self):
        for i, member in enumerate(self.members):
            yield member
            self.shown.append(i)

    def set_postfix(self, **values):
        self.shown.append(", ".join(f"{name}={value:.3g}" for name, value in values.items()))


def progress_bar():
    model, optimizer = network()

    def run(bar):
        for x, y in bar:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            bar.set_postfix(loss=loss.item(), rate=optimizer.param_groups[0]["lr"])

    def epoch(x, y):
        bar = Progress(batches(x, y))
        run(bar)
        return bar.shown

    return epoch, [model]


# ----------------------------------------------------------------------------------------- kinds of functions


class Gate(nn.Module):
    """A block that decides by a value."""

    def __init__(self):
        super().__init__()
        self.inner, _ = network()
        self.calls = 0

    def forward(self, x):
        h = self.inner(x).tanh()
        self.calls += 1
        if h.sum() > 0:
            h = h * 2
        return h + x


class Wide(Gate):
    """A block that calls that of its base class."""

    def forward(self, x):
        h = super().forward(x.sin())
        return h * h + self.calls


def gate_deep_in_a_model():
    model = nn.Sequential(nn.Sequential(nn.Tanh(), Gate()), nn.ReLU(), Wide())
    head = nn.Linear(3, 1)
    nn.init.constant_(head.weight, 0.5)
    return (lambda x, y: head(model(x * 2) + y).sum()), [model]


def hooks_of_modules():
    gate = Gate()
    gate.register_forward_hook(lambda module, args, out: out * 3)
    gate.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    model = nn.Sequential(nn.Tanh(), gate)
    return (lambda x, y: (model(x) * y).sum()), [model]


def generators():
    model, optimizer = network()

    def losses(data):
        for x, y in data:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            yield loss.item()

    return (lambda x, y: ([2 * loss for loss in losses(batches(x, y))], sum(losses(batches(x, y))))), [model]


def reported(function):
    noted = []

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        noted.append(len(args))
        out = function(*args, **kwargs)
        noted.append(out.sum().item())
        return out * 2, list(noted)

    return wrapper


def decorators():
    model, _ = network()

    @reported
    def inner(x, y, *, scale=2):
        h = model(x) * scale
        return h + y * float(h.sum())

    return (lambda x, y: (inner(x, y, scale=3), inner(x, y))), [model]


def lambdas_and_defaults():
    scaled = [lambda x, n=n: x.sin() * x.sum().item() * n for n in (2, 3)]
    return (lambda x, y: (scaled[0](x) + y, scaled[1](y) * 2)), []


def recursion():
    def power(x, n):
        if n == 0:
            return x * x.sum().item()
        return power(x.sin() + n, n - 1) * 2

    return (lambda x, y: power(x, 3) + y), []


def functions_inside():
    def step(x, y):
        calls = [0]

        def inner(z):
            calls[0] += 1
            return z.cos() * z.sum().item()

        return (inner(x) + inner(y * 2)) * calls[0]

    return step, []


def rebinding():
    class Scale:
        def __call__(self, x):
            return x.sin() * x.sum().item()

    holder = {"f": Scale(), "calls": 0}

    def step(x, y):
        out = holder["f"](x) + y
        holder["calls"] += 1
        if holder["calls"] % 3 == 0:
            holder["f"] = [abs, Scale(), lambda x: x.cos() * x.max().item()][holder["calls"] // 3 % 3]
        return out

    return step, []


def variables_around():
    count = 0

    def scaled(x):
        nonlocal count
        count += 1
        return (x.sin() * 2).exp() * count

    return (lambda x, y: (scaled(x * 2) + y, count)), []


def errors():
    def checked(x, n):
        h = x.cos() * 2
        if n % 3 == 2:
            raise ValueError(h.sum().item())
        return h + h.sum().item()

    calls = []

    def step(x, y):
        calls.append(1)
        try:
            return checked(x, len(calls)) + 1
        except ValueError as error:
            return str(error)

    return step, []


def conditions():
    def scaled(x):
        return x.sin() * x.sum().item()

    return (lambda x, y: scaled(x) + 1 if y.sum().item() > 0 and scaled(y).sum() > 0 else scaled(y) * 2), []


def context_managers():
    noted = []

    @contextlib.contextmanager
    def noting(x):
        noted.append(x.exp().sum().item())
        yield x.sin()
        noted.append(len(noted))

    def step(x, y):
        with noting(x) as z:
            out = z * y
        return out, list(noted)

    return step, []


TRAINING = [trainer_class, lightning_loop, adversarial_networks, early_stopping, clips_and_reports, averaged_weights,
            mixed_precision, validation_with_meters, progress_bar]  # fmt: skip
KINDS = [gate_deep_in_a_model, hooks_of_modules, generators, decorators, lambdas_and_defaults, recursion,
         functions_inside, rebinding, variables_around, errors, conditions, context_managers]  # fmt: skip
# In the end no called function has programs: none has a break, they are other functions at each call, or have no parts.
RUN_EAGERLY = [averaged_weights, functions_inside, context_managers]
