"""Parity cases of a stage's backward pass, whole and split."""

from .common import filled, numbers, pp
from .splits import written


def weights_of(m):
    return [numbers(m, 3, 3, seed=s, grad=True) for s in range(2)] + [numbers(m, 3, seed=4, grad=True)]


def linear(m, x, ws):
    return x @ ws[0] + ws[2]


def deep(m, x, ws):
    return ((x @ ws[0]).tanh() @ ws[1] + ws[2]).sin()


def shared(m, x, ws):
    return (x @ ws[0]).tanh() @ ws[0] * ws[2]


def transposed(m, x, ws):
    return x @ ws[0].t() + (x @ ws[0]) * ws[2][None, :]


def computed(m, x, ws):
    return x @ (ws[0] * ws[1]).exp() + x.cos() @ ws[1]


def joined(m, x, ws):
    return m.cat([x @ ws[0], x.sin() @ ws[1]], 0) * ws[2]


def no_weights(m, x, ws):
    return x.exp() * 3


def normal(m, x, ws):
    return m.nn.functional.layer_norm(x @ ws[0], (3,), ws[2], ws[2])


PROGRAMS = [linear, deep, shared, transposed, computed, joined, no_weights, normal]


def whole_backward(program, learns=True):
    def case(m):
        x, ws = numbers(m, 2, 3, seed=7, grad=learns), weights_of(m)
        out = program(m, x, ws)
        found = pp(m).stage_backward(out, numbers(m, *out.shape, seed=2), [x])
        return found, [w.grad for w in ws]

    return case


def halves(program, learns=True):
    def case(m):
        x, ws = numbers(m, 2, 3, seed=7, grad=learns), weights_of(m)
        out = program(m, x, ws)
        found, groups = pp(m).stage_backward_input([out], [numbers(m, *out.shape, seed=2)], [x], iter(ws))
        between = [w.grad for w in ws]
        pp(m).stage_backward_weight(iter(ws), groups)
        return found, between, [w.grad for w in ws]

    return case


def steps(m):
    """Run two microbatches, whose weight gradients are computed late."""
    ws, waiting = weights_of(m), []
    for seed in (3, 8):
        x = numbers(m, 2, 3, seed=seed, grad=True)
        waiting.append(pp(m).stage_backward_input([deep(m, x, ws)], [numbers(m, 2, 3)], [x], iter(ws))[1])
    for groups in waiting:
        pp(m).stage_backward_weight(iter(ws), groups)
    return [w.grad for w in ws]


def a_block(m):
    def forward(self, m, x):
        return x + self.down(m.nn.functional.gelu(self.up(m.nn.functional.layer_norm(x, (4,)))))

    model = filled(m, written(m, forward, up=m.nn.Linear(4, 8), down=m.nn.Linear(8, 4)))
    x = numbers(m, 3, 4, grad=True)
    found, groups = pp(m).stage_backward_input([model(x)], [numbers(m, 3, 4, seed=1)], [x], model.parameters())
    pp(m).stage_backward_weight(model.parameters(), groups)
    return found, [p.grad for p in model.parameters()]


def a_loss(m):
    x, ws = numbers(m, 2, 3, grad=True), weights_of(m)
    found, groups = pp(m).stage_backward_input([deep(m, x, ws).sum()], None, [x], iter(ws))
    pp(m).stage_backward_weight(iter(ws), groups)
    return found, [w.grad for w in ws]


def whole_of(outputs, grads, values=lambda m, x: [x], *indices):
    """Run stage_backward of values computed from x and y."""

    def case(m):
        x, y = numbers(m, 3, seed=1, grad=True), numbers(m, 3, seed=2, grad=True)
        found = pp(m).stage_backward(outputs(m, x, y), grads(m), values(m, x), *indices)
        return found, x.grad, y.grad

    return case


def first_of(outputs, grads, values=lambda m, x: [x]):
    """Run stage_backward_input of values computed from x and a weight y, and stage_backward_weight."""

    def case(m):
        x, y = numbers(m, 3, seed=1, grad=True), numbers(m, 3, seed=2, grad=True)
        found, groups = pp(m).stage_backward_input(outputs(m, x, y), grads(m), values(m, x), iter([y]))
        pp(m).stage_backward_weight(iter([y]), groups)
        return found, y.grad

    return case


def ones(m, size=3):
    return m.ones(size, dtype=m.float64)


OUTPUTS = {
    "a tensor": whole_of(lambda m, x, y: x * y, ones),
    "a tuple": whole_of(lambda m, x, y: (x * y, x * 2), lambda m: (ones(m), ones(m))),
    "a list for a tuple": whole_of(lambda m, x, y: (x * y, x * 2), lambda m: [ones(m), ones(m)]),
    "a dict": whole_of(lambda m, x, y: {"a": x * y, "b": x * 2}, lambda m: {"b": ones(m), "a": ones(m) * 2}),
    "nested": whole_of(lambda m, x, y: {"a": [x * y, (x * 2,)]}, lambda m: {"a": [ones(m), (ones(m),)]}),
    "no tensor": whole_of(lambda m, x, y: (x * y, 7, "text", None), lambda m: (ones(m), None, None, None)),
    "no gradient needed": whole_of(lambda m, x, y: (x * y, x.detach()), lambda m: (ones(m), ones(m))),
    "no gradient needed, none given": whole_of(lambda m, x, y: (x * y, x.detach()), lambda m: (ones(m), None)),
    "None for a container": whole_of(lambda m, x, y: (x * y, [x * 2]), lambda m: (ones(m), None)),
    "None for a tensor": whole_of(lambda m, x, y: (x * y, x * 2), lambda m: (ones(m), None)),
    "None for one element": whole_of(lambda m, x, y: (x * y, x.sum()), lambda m: (ones(m), None)),
    "a loss": whole_of(lambda m, x, y: (x * y).sum(), lambda m: None),
    "None for all": whole_of(lambda m, x, y: x * y, lambda m: None),
    "the same output twice": whole_of(lambda m, x, y: [x * y] * 2, lambda m: [ones(m)] * 2),
    "an output that is an input": whole_of(lambda m, x, y: (x, x * y), lambda m: (ones(m), ones(m))),
    "an input that is no tensor": whole_of(lambda m, x, y: x * y, ones, lambda m, x: [3, x, None]),
    "an input that nobody uses": whole_of(
        lambda m, x, y: x * y, ones, lambda m, x: [numbers(m, 2, grad=True), ones(m), x]
    ),
    "an index": whole_of(lambda m, x, y: (x * 2, x * y), lambda m: (None, ones(m)), lambda m, x: [x], [1]),
    "an index that is not there": whole_of(lambda m, x, y: (x * y,), lambda m: (ones(m),), lambda m, x: [x], [4]),
    "fewer gradients": whole_of(lambda m, x, y: (x * y, x * 2), lambda m: (ones(m),)),
    "other keys": whole_of(lambda m, x, y: {"a": x * y}, lambda m: {"b": ones(m)}),
    "a tensor for a container": whole_of(lambda m, x, y: [x * y], ones),
    "a container for a tensor": whole_of(lambda m, x, y: x * y, lambda m: [ones(m)]),
    "a number": whole_of(lambda m, x, y: x * y, lambda m: 1.0),
    "another shape": whole_of(lambda m, x, y: x * y, lambda m: ones(m, 2)),
}


def again(m):
    x, y = numbers(m, 3, grad=True), numbers(m, 3, grad=True)
    out = x * y
    for _ in range(2):
        pp(m).stage_backward(out, ones(m), [x])


def played_twice(m):
    x, y = numbers(m, 3, grad=True), numbers(m, 3, grad=True)
    _, groups = pp(m).stage_backward_input([x * y], [ones(m)], [x], iter([y]))
    for _ in range(2):
        pp(m).stage_backward_weight(iter([y]), groups)


def inputs_grad(whole_backward):
    """Return an input's .grad afterwards."""

    def case(m):
        x, y = numbers(m, 3, grad=True), numbers(m, 3, grad=True)
        if whole_backward:
            pp(m).stage_backward(x * y, ones(m), [x])
        else:
            pp(m).stage_backward_input([x * y], [ones(m)], [x], iter([y]))
        return x.grad

    return case


def earlier_grad(m):
    x, y = numbers(m, 3, grad=True), numbers(m, 3, grad=True)
    x.grad = ones(m)
    return pp(m).stage_backward(x * y, ones(m), [x]), x.grad


def returned(m):
    x, y = numbers(m, 3, grad=True), numbers(m, 3, grad=True)
    _, groups = pp(m).stage_backward_input([x * y], [ones(m)], [x], iter([y]))
    return pp(m).stage_backward_weight(iter([y]), groups)


def result_as_input(whole_backward):
    """Use an input that is not a leaf."""

    def case(m):
        w, y = numbers(m, 3, grad=True), numbers(m, 3, seed=3, grad=True)
        x = w.sin()
        if whole_backward:
            return pp(m).stage_backward(x * y, ones(m), [x]), w.grad, y.grad
        found, groups = pp(m).stage_backward_input([x * y], [ones(m)], [x], iter([y]))
        pp(m).stage_backward_weight(iter([y]), groups)
        return found, y.grad

    return case


def detached(m):
    x, y = numbers(m, 3, grad=True), numbers(m, 3, grad=True)
    out = x * y
    pp(m).stage_backward_input([out], [ones(m)], [x], iter([y]))
    return out.requires_grad


CORNERS = {
    "twice": again,
    "groups played twice": played_twice,
    "the input's grad after": inputs_grad(True),
    "the input's grad after the first half": inputs_grad(False),
    "an input that has a grad": earlier_grad,
    "what the second half returns": returned,
    "an input that is a result": result_as_input(True),
    "an input that is a result, in halves": result_as_input(False),
    "the outputs after the first half": detached,
    "two microbatches": steps,
    "a block": a_block,
    "a loss": a_loss,
    "ones for all": first_of(lambda m, x, y: [x * y, x * 2], lambda m: None),
    "an output that leads to weights only": first_of(lambda m, x, y: [x * 2, y * 3], lambda m: [ones(m)] * 2),
    "an output without gradient": first_of(lambda m, x, y: [x * y, x.detach()], lambda m: [ones(m), None]),
    "no outputs with gradient": first_of(lambda m, x, y: [x.detach()], lambda m: [None]),
    "None for an output": first_of(lambda m, x, y: [x * y, x * 2], lambda m: [ones(m), None]),
    "another shape": first_of(lambda m, x, y: [x * y], lambda m: [ones(m, 2)]),
    "inputs that are no tensors": first_of(lambda m, x, y: [x * y], lambda m: [ones(m)], lambda m, x: [3, x, None]),
}

WHOLE = {p.__name__: whole_backward(p) for p in PROGRAMS} | {
    f"{p.__name__}, x fixed": whole_backward(p, False) for p in PROGRAMS[:-2]
}
# Whether PyTorch's second half of `computed` fails depends on the order of a set there.
HALVES = {p.__name__: halves(p) for p in PROGRAMS if p is not computed}
HALVES |= {f"{p.__name__}, x fixed": halves(p, False) for p in PROGRAMS[:-2]}
