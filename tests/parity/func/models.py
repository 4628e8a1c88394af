"""Parity cases of modules: functional_call, stack_module_state, per-sample gradients, ensembles, inner loops."""

from itertools import pairwise

from .common import integers, x


def filled(m, model):
    """Return the model in float64, with the same parameter values in either library."""
    model = model.double()
    with m.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(x(m, *p.shape, seed=20 + i))
    return model


def net(m, sizes=(3, 5, 2)):
    layers = []
    for a, b in pairwise(sizes):
        layers += [m.nn.Linear(a, b), m.nn.Tanh()]
    return filled(m, m.nn.Sequential(*layers[:-1]))


def state(m, model):
    """Return its parameters with other values."""
    return {name: x(m, *p.shape, seed=40 + i) for i, (name, p) in enumerate(model.named_parameters())}


def counting(m):
    """Return a module that replaces one buffer, and writes to another."""

    class Counting(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = m.nn.Parameter(m.ones(2, dtype=m.float64))
            self.register_buffer("count", m.zeros((), dtype=m.float64))
            self.register_buffer("total", m.zeros(2, dtype=m.float64))

        def forward(self, v, fail=False):
            self.count = self.count + 1
            self.total.add_(v.detach())
            if fail:
                raise KeyError("after the writes")
            return v * self.weight + self.count

    return Counting()


def tied(m):
    """Return a module in which one weight has two names."""

    class Tied(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = m.nn.Linear(2, 2)
            self.second = m.nn.Linear(2, 2)
            self.second.weight = self.first.weight

        def forward(self, v):
            return self.second(self.first(v))

    return filled(m, Tied())


def call(m, model, *args, **kwargs):
    return m.func.functional_call(model, *args, **kwargs)


def counting_state(m, given, **kwargs):
    """Return the state of the dicts, and of the module, after a call of the counting module."""
    model = counting(m)
    try:
        out = call(m, model, given, (x(m, 2), kwargs.pop("fail", False)), **kwargs)
    except KeyError:
        out = "failed"
    return out, given, list(model.named_buffers())


def buffers(m):
    return {"count": m.ones((), dtype=m.float64) * 5, "total": m.ones(2, dtype=m.float64)}


def tied_call(m, names, values=None, **kwargs):
    given = [x(m, 2, 2, seed=60 + i) for i in (values or range(len(names)))]
    if values:
        given = [given[0]] * len(names)
    return call(m, tied(m), dict(zip(names, given, strict=True)), x(m, 2), **kwargs)


CALLS = {
    "functional_call": lambda m: call(m, net(m), state(m, net(m)), x(m, 4, 3)),
    "one name": lambda m: call(m, net(m), {"0.bias": x(m, 5, seed=9)}, x(m, 4, 3)),
    "no name": lambda m: call(m, net(m), {}, x(m, 4, 3)),
    "two dicts": lambda m: call(m, net(m), ({"0.bias": x(m, 5)}, {"2.bias": x(m, 2)}), x(m, 4, 3)),
    "a list of dicts": lambda m: call(m, net(m), [{"0.bias": x(m, 5)}, {}], x(m, 4, 3)),
    "no dicts": lambda m: call(m, net(m), (), x(m, 4, 3)),
    "a name in two dicts": lambda m: call(m, net(m), ({"0.bias": x(m, 5)}, {"0.bias": x(m, 5)}), x(m, 4, 3)),
    "no dict": lambda m: call(m, net(m), 3, x(m, 4, 3)),
    "a list without dicts": lambda m: call(m, net(m), [3], x(m, 4, 3)),
    "None for the dict": lambda m: call(m, net(m), None, x(m, 4, 3)),
    "a tuple of arguments": lambda m: call(m, counting(m), {"weight": x(m, 2)}, (x(m, 2), False)),
    "a list of arguments": lambda m: call(m, net(m), {}, [x(m, 4, 3)]),
    "keywords": lambda m: call(m, net(m), {}, None, {"input": x(m, 4, 3)}),
    "no arguments": lambda m: call(m, counting(m), {}),
    "a name that is not there": lambda m: call(m, net(m), {"7.bias": x(m, 5)}, x(m, 4, 3)),
    "an attribute that is not there": lambda m: call(m, net(m), {"0.other": x(m, 5)}, x(m, 4, 3)),
    "an empty name": lambda m: call(m, net(m), {"": x(m, 5)}, x(m, 4, 3)),
    "a module's name": lambda m: call(m, net(m), {"0": x(m, 5)}, x(m, 4, 3)),
    "an attribute that is no tensor": lambda m: call(m, net(m), {"training": x(m, 5)}, x(m, 4, 3)),
    "a number for a tensor": lambda m: call(m, net(m), {"0.bias": 3.0}, x(m, 4, 3)),
    "None for a tensor": lambda m: call(m, net(m), {"0.bias": None}, x(m, 4, 3)),
    "a tensor of another shape": lambda m: call(m, net(m), {"0.bias": x(m, 4)}, x(m, 4, 3)),
    "what is no module": lambda m: call(m, lambda v: v, {"a": x(m, 3)}, x(m, 3)),
    "strict": lambda m: call(m, net(m), state(m, net(m)), x(m, 4, 3), strict=True),
    "strict, one missing": lambda m: call(m, net(m), {"0.bias": x(m, 5)}, x(m, 4, 3), strict=True),
    "strict, one too many": lambda m: call(
        m, net(m), {**state(m, net(m)), "0.other": x(m, 5)}, x(m, 4, 3), strict=True
    ),
    "strict without buffers": lambda m: call(m, counting(m), {"weight": x(m, 2)}, x(m, 2), strict=True),
    "strict with tied weights": lambda m: call(m, tied(m), state(m, tied(m)), x(m, 2), strict=True),
    "strict with tied weights untied": lambda m: call(
        m, tied(m), state(m, tied(m)), x(m, 2), strict=True, tie_weights=False
    ),
    "a tied weight": lambda m: tied_call(m, ["first.weight"]),
    "a tied weight by the other name": lambda m: tied_call(m, ["second.weight"]),
    "a tied weight untied": lambda m: tied_call(m, ["first.weight"], tie_weights=False),
    "a tied weight untied by the other name": lambda m: tied_call(m, ["second.weight"], tie_weights=False),
    "two values of a tied weight": lambda m: tied_call(m, ["first.weight", "second.weight"]),
    "two values of a tied weight untied": lambda m: tied_call(m, ["first.weight", "second.weight"], tie_weights=False),
    "one value by both names": lambda m: tied_call(m, ["first.weight", "second.weight"], values=[0, 0]),
    "buffers come back": lambda m: counting_state(m, buffers(m)),
    "buffers come back from a failure": lambda m: counting_state(m, buffers(m), fail=True),
    "buffers of the module": lambda m: counting_state(m, {"weight": x(m, 2)}),
    "buffers of two dicts": lambda m: counting_state(m, ({"weight": x(m, 2)}, buffers(m))),
    "the gradient": lambda m: (lambda n: m.func.grad(lambda p: call(m, n, p, x(m, 4, 3)).pow(2).sum())(state(m, n)))(
        net(m)
    ),
    "buffers in vmap": lambda m: buffers_in_vmap(m),
    "the graph of the parameters": lambda m: graph_of_parameters(m),
    "the module afterwards": lambda m: (lambda n: (call(m, n, state(m, n), x(m, 4, 3)), n(x(m, 4, 3))))(net(m)),
    "parameters stay parameters": lambda m: (
        lambda n: (call(m, n, state(m, n), x(m, 4, 3)), [type(p).__name__ for p in n.parameters()])[1]
    )(net(m)),
}


def buffers_in_vmap(m):
    """Update statistics in a stack of models."""
    models = [counting(m), counting(m)]
    params, given = stacked(m, models)
    out = m.func.vmap(lambda p, b, v: call(m, models[0], {**p, **b}, v))(params, given, x(m, 2, 2))
    return out, given


def graph_of_parameters(m):
    model = net(m)
    given = {name: p.requires_grad_() for name, p in state(m, model).items()}
    call(m, model, given, x(m, 4, 3)).sum().backward()
    return [p.grad for p in given.values()], [p.grad for p in model.parameters()]


def stacked(m, models):
    return m.func.stack_module_state(models)


def some(m, count=3):
    models = [net(m) for _ in range(count)]
    with m.no_grad():
        for i, model in enumerate(models):
            for p in model.parameters():
                p.mul_(i + 1)
    return models


def frozen(m, *which):
    models = some(m)
    for i in which:
        models[i].requires_grad_(False)
    return models


STACKS = {
    "stack_module_state": lambda m: stacked(m, some(m)),
    "of a list of modules": lambda m: stacked(m, m.nn.ModuleList(some(m))),
    "of one": lambda m: stacked(m, some(m, 1)),
    "of none": lambda m: stacked(m, []),
    "with buffers": lambda m: stacked(m, [counting(m), counting(m)]),
    "of tied weights": lambda m: stacked(m, [tied(m), tied(m)]),
    "of two classes": lambda m: stacked(m, [net(m), tied(m)]),
    "of two sizes": lambda m: stacked(m, [net(m), net(m, (3, 4, 2))]),
    "of two depths": lambda m: stacked(m, [net(m), net(m, (3, 5, 2, 2))]),
    "of two modes": lambda m: stacked(m, [net(m), net(m).eval()]),
    "in evaluation mode": lambda m: stacked(m, [net(m).eval(), net(m).eval()]),
    "all frozen": lambda m: [p.requires_grad for p in stacked(m, frozen(m, 0, 1, 2))[0].values()],
    "one frozen": lambda m: stacked(m, frozen(m, 1)),
    "leaves": lambda m: [(p.is_leaf, p.requires_grad) for p in stacked(m, some(m))[0].values()],
    "an ensemble": lambda m: ensemble(m, None),
    "an ensemble with data of its own": lambda m: ensemble(m, 0),
    "an ensemble's gradients": lambda m: ensemble_gradients(m),
}


def ensemble(m, dim):
    models = some(m)
    params, bufs = stacked(m, models)

    def one(params, bufs, v):
        return call(m, models[0], (params, bufs), v)

    data = x(m, 4, 3) if dim is None else x(m, 3, 4, 3)
    together = m.func.vmap(one, (0, 0, dim))(params, bufs, data)
    return together, m.stack([model(data if dim is None else data[i]) for i, model in enumerate(models)])


def ensemble_gradients(m):
    models = some(m)
    params, _ = stacked(m, models)
    return m.func.vmap(m.func.grad(lambda p, v: call(m, models[0], p, v).pow(2).sum()), (0, None))(params, x(m, 4, 3))


def loss(m, model):
    def of(params, v, t):
        return m.nn.functional.mse_loss(call(m, model, params, v[None]), t[None])

    return of


def samples(m):
    return x(m, 6, 3, seed=11), x(m, 6, 2, seed=12)


def convolutional(m):
    F = m.nn.functional
    params = {"conv": x(m, 2, 1, 3, 3), "bias": x(m, 2), "out": x(m, 3, 32, seed=3)}

    def of(p, image, label):
        hidden = m.relu(F.conv2d(image[None], p["conv"], p["bias"], padding=1)).flatten(1)
        return F.cross_entropy(F.linear(hidden, p["out"]), label[None])

    return m.func.vmap(m.func.grad(of), (None, 0, 0))(params, x(m, 5, 1, 4, 4), integers(m, 5) % 3)


def attention(m):
    def of(p, v):
        q, k, u = (v @ w for w in p)
        return (m.softmax(q @ k.mT / 3**0.5, -1) @ u).sum()

    return m.func.vmap(m.func.grad_and_value(of), (None, 0))(tuple(x(m, 3, 3, seed=i) for i in range(3)), x(m, 5, 4, 3))


def maml(m, steps, second_order=True):
    """Return gradients of the losses after some steps on each task, summed over tasks."""
    model = net(m, (1, 4, 1))
    v, t = x(m, 5, 6, 1, seed=30), x(m, 5, 6, 1, seed=31)

    def task(params, v, t):
        def of(p):
            return m.nn.functional.mse_loss(call(m, model, p, v), t)

        for _ in range(steps):
            found = m.func.grad(of)(params)
            params = {n: p - 0.1 * (found[n] if second_order else found[n].detach()) for n, p in params.items()}
        return of(params)

    def total(params):
        return m.func.vmap(task, (None, 0, 0))(params, v, t).mean()

    return m.func.grad_and_value(total)(state(m, model))


def fisher(m):
    """Return Jacobians of a model for each example, and their products: the empirical tangent kernel."""
    model = net(m)

    def one(params, v):
        return call(m, model, params, v[None])[0]

    found = m.func.vmap(m.func.jacrev(one), (None, 0))(state(m, model), x(m, 4, 3))
    flat = m.cat([j.flatten(2) for j in found.values()], -1)
    return m.einsum("nap,mbp->nmab", flat, flat)


def newton(m):
    def f(v):
        return (m.cosh(v) + (v - 0.3) ** 4).sum()

    v = x(m, 3)
    for _ in range(3):
        v = v - m.linalg.solve(m.func.hessian(f)(v), m.func.grad(f)(v))
    return v


def sgd(m):
    model, (v, t) = net(m), samples(m)
    params = state(m, model)
    for _ in range(3):
        found = m.func.grad(lambda p: m.nn.functional.mse_loss(call(m, model, p, v), t))(params)
        params = {name: p - 0.1 * found[name] for name, p in params.items()}
    return params


PROGRAMS = {
    "gradients per sample": lambda m: m.func.vmap(m.func.grad(loss(m, net(m))), (None, 0, 0))(
        state(m, net(m)), *samples(m)
    ),
    "gradients per sample by chunks": lambda m: m.func.vmap(m.func.grad(loss(m, net(m))), (None, 0, 0), chunk_size=4)(
        state(m, net(m)), *samples(m)
    ),
    "values and gradients per sample": lambda m: m.func.vmap(m.func.grad_and_value(loss(m, net(m))), (None, 0, 0))(
        state(m, net(m)), *samples(m)
    ),
    "hessians per sample": lambda m: m.func.vmap(m.func.hessian(loss(m, net(m, (3, 2)))), (None, 0, 0))(
        state(m, net(m, (3, 2))), *samples(m)
    ),
    "hessians of the inputs": lambda m: m.func.vmap(m.func.hessian(loss(m, net(m)), 1), (None, 0, 0))(
        state(m, net(m)), *samples(m)
    ),
    "hessian times a vector of parameters": lambda m: (
        lambda n: m.func.jvp(
            m.func.grad(lambda p: call(m, n, p, x(m, 4, 3)).pow(2).sum()), (state(m, n),), (state(m, n),)
        )
    )(net(m)),
    "laplacians": lambda m: m.func.vmap(lambda v: m.func.hessian(lambda w: net(m)(w).sum())(v).diagonal().sum())(
        x(m, 4, 3)
    ),
    "a tangent kernel": fisher,
    "a convolution per sample": convolutional,
    "attention per sample": attention,
    "one inner step": lambda m: maml(m, 1),
    "three inner steps": lambda m: maml(m, 3),
    "first order inner steps": lambda m: maml(m, 2, second_order=False),
    "newton steps": newton,
    "gradient descent": sgd,
}
