"""Whole training steps: parameters, gradients, buffers and random numbers have the eager run's bits."""

import pytest

import retrograd as rg
from retrograd import nn

from .comparison import assert_same_runs, numbers

OPTIMIZERS = {
    "SGD": {"lr": 0.1},
    "SGD momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adam": {"lr": 0.01},
    "Adam amsgrad": {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"lr": 0.01},
    "Adamax": {}, "Adadelta": {}, "Adagrad": {}, "NAdam": {}, "RAdam": {}, "ASGD": {}, "RMSprop": {}, "Rprop": {},
}  # fmt: skip


def labels(n, classes, seed):
    return rg.randint(0, classes, (n,), generator=rg.Generator().manual_seed(seed))


def training(model, optimizer, loss_function=None, clip=None, schedule=None):
    """Return a training step, and the tensors that it changes."""
    loss_function = loss_function or nn.CrossEntropyLoss()

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        return loss.detach()

    return step, [*model.parameters(), *model.buffers()]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_with_every_optimizer(name):
    def make():
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        return training(model, getattr(rg.optim, name.split()[0])(model.parameters(), **OPTIMIZERS[name]))

    assert_same_runs(make, lambda i: (numbers(4, 6, seed=i), labels(4, 3, i)), calls=12)


def test_a_step_with_dropout_batch_norm_clipping_and_a_schedule():
    def make():
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
        optimizer = rg.optim.AdamW(model.parameters(), lr=0.05)
        return training(model, optimizer, clip=0.5, schedule=rg.optim.lr_scheduler.StepLR(optimizer, 3))

    assert_same_runs(make, lambda i: (numbers(5, 6, seed=i), labels(5, 3, i)), calls=100)


def test_a_convolutional_network():
    def make():
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)
        )
        return training(model, rg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

    assert_same_runs(make, lambda i: (numbers(3, 1, 8, 8, seed=i), labels(3, 3, i)), calls=8)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens):
        x = self.embedding(tokens) * 8**0.5
        return self.head(self.layer(x).mean(1))


def test_a_transformer():
    def make():
        model = Encoder()
        return training(model, rg.optim.Adam(model.parameters(), lr=0.01))

    def arguments(i):
        tokens = rg.randint(0, 11, (3, 5), generator=rg.Generator().manual_seed(i))
        return tokens, labels(3, 3, i)

    assert_same_runs(make, arguments, calls=8)


def test_a_recurrent_network():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.LSTM(4, 6, batch_first=True)
            self.head = nn.Linear(6, 3)

        def forward(self, x):
            return self.head(self.cells(x)[0][:, -1])

    def make():
        model = Last()
        return training(model, rg.optim.Adam(model.parameters(), lr=0.01))

    assert_same_runs(make, lambda i: (numbers(3, 5, 4, seed=i), labels(3, 3, i)), calls=5)


def test_gradients_are_accumulated_over_calls_without_zero_grad():
    def make():
        model = nn.Linear(4, 2)

        def step(x):
            loss = model(x).square().mean()
            loss.backward()
            return loss.detach()

        return step, [*model.parameters()]

    assert_same_runs(make, lambda i: (numbers(3, 4, seed=i),), calls=5)


@pytest.mark.parametrize("name", ["SGD momentum", "Adam", "RMSprop"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_gradients_are_set_to_zero_in_place_of_none(name, first):
    def make():
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        optimizer = getattr(rg.optim, name.split()[0])(model.parameters(), **OPTIMIZERS[name])

        def step(x):
            if first:
                optimizer.zero_grad(set_to_none=False)
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            if not first:
                optimizer.zero_grad(set_to_none=False)
            return loss.detach()

        return step, list(model.parameters())

    assert_same_runs(make, lambda i: (numbers(4, 6, seed=i),))


def test_gradient_descent_by_hand():
    def make():
        weights = [numbers(4, 4, seed=i).requires_grad_() for i in range(2)]

        def step(x):
            loss = (x @ weights[0]).tanh().matmul(weights[1]).square().mean()
            loss.backward()
            with rg.no_grad():
                for w in weights:
                    w -= 0.1 * w.grad
                    w.grad = None
            return loss.detach()

        return step, weights

    assert_same_runs(make, lambda i: (numbers(3, 4, seed=i),))


UPDATES = {
    "-=": lambda p, average: setattr(p, "data", p.data.__isub__(0.1 * p.grad.data)),
    "sub_": lambda p, average: p.data.sub_(p.grad.data, alpha=0.1),
    "clamp_": lambda p, average: p.grad.data.clamp_(-0.1, 0.1),
    "an average": lambda p, average: average.data.mul_(0.9).add_(p.data, alpha=0.1),
    "a copy": lambda p, average: average.data.copy_(0.9 * average.data + 0.1 * p.data),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates_of_data_are_compiled(name):
    def make():
        model, average = nn.Linear(6, 3), nn.Linear(6, 3)

        def step(x):
            hidden = model(x).sin()
            hidden.data.mul_(2)  # its node has saved the tensor
            loss = hidden.square().mean()
            loss.backward()
            for p, mean in zip(model.parameters(), average.parameters(), strict=True):
                UPDATES[name](p, mean)
                p.grad = None
            return loss.detach()

        return step, [*model.parameters(), *average.parameters()]

    assert_same_runs(make, lambda i: (numbers(4, 6, seed=i),))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64"])
def test_other_dtypes(dtype):
    def make():
        w = numbers(4, 4).to(getattr(rg, dtype)).requires_grad_()

        def f(x):
            y = (x.to(w.dtype) @ w).sin() * 2
            (y * y.conj()).real.sum().backward()
            return y.detach()

        return f, [w]

    assert_same_runs(make, lambda i: (numbers(3, 4, seed=i),))


def test_autocast():
    def make():
        model = nn.Linear(4, 4)

        def f(x):
            with rg.autocast("cpu", dtype=rg.bfloat16):
                y = model(x).relu()
            y.float().sum().backward()
            return y.detach()

        return f, [*model.parameters()]

    assert_same_runs(make, lambda i: (numbers(3, 4, seed=i),))


class Square(rg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.factor = 2
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * ctx.factor


def test_a_function_with_a_backward_of_its_own():
    def make():
        w = numbers(4).requires_grad_()

        def f(x):
            y = Square.apply(x * w)
            y.sum().backward()
            return y.detach()

        return f, [w]

    assert_same_runs(make, lambda i: (numbers(4, seed=i),))


def test_two_backward_passes_in_one_step():
    def make():
        model = nn.Linear(4, 2)
        optimizer = rg.optim.SGD(model.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            for part in (x, y):
                (model(part).square().mean() / 2).backward()
            optimizer.step()

        return step, [*model.parameters()]

    assert_same_runs(make, lambda i: (numbers(3, 4, seed=i), numbers(3, 4, seed=i + 50)))


def test_shared_weights_are_added_in_the_same_order():
    def make():
        w = (numbers(4, 4) * 3).requires_grad_()

        def step(x):
            w.grad = None
            h = x
            for _ in range(4):
                h = (h @ w).tanh() + w.sum() * h
            h.sum().backward()
            return h.detach()

        return step, [w]

    assert_same_runs(make, lambda i: (numbers(3, 4, seed=i),))


def test_transforms_inside_a_compiled_function():
    def make():
        w = numbers(3)

        def f(x):
            slopes = rg.func.vmap(rg.func.grad(lambda row: (row * w).sin().sum()))(x)
            return slopes, rg.func.jvp(lambda y: (y * y).sum(), (x,), (x,))[1], rg.func.jacrev(lambda y: y.exp())(x[0])

        return f, [w]

    assert_same_runs(make, lambda i: (numbers(4, 3, seed=i),))


def test_a_compiled_transform():
    def make():
        return rg.func.vmap(rg.func.grad(lambda row: row.sin().sum())), []

    assert_same_runs(make, lambda i: (numbers(4, 3, seed=i),))


def test_leapfrog_with_gradients_by_autograd_grad():
    def make():
        def energy(q):
            return (q.square().sum() + (q[1:] * q[:-1]).sum().square()) / 2

        def f(q, p):
            q = q.detach()
            for _ in range(3):
                at = q.detach().requires_grad_()
                (slope,) = rg.autograd.grad(energy(at), at)
                p = p - 0.1 * slope
                q = q + 0.1 * p
            return q, p

        return f, []

    assert_same_runs(make, lambda i: (numbers(6, seed=i), numbers(6, seed=i + 9)))


@pytest.mark.parametrize("method", ["euler", "midpoint", "heun", "rk4"])
def test_a_neural_differential_equation_with_equal_steps(method):
    def make():
        model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        optimizer = rg.optim.Adam(model.parameters(), lr=0.01)
        times = rg.linspace(0, 1, 4)

        def step(y0, target):
            optimizer.zero_grad()
            y = getattr(rg.ode, method)(lambda t, y: model(y), y0, times, steps=2)
            loss = (y - target).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, [*model.parameters()]

    assert_same_runs(make, lambda i: (numbers(5, 2, seed=i), numbers(4, 5, 2, seed=i + 1)), calls=5)
