"""Random stages: outputs nested in any way, with or without gradients, and inputs of every kind.

A stage is drawn from a seed and independently of the library, so that both libraries get the same program.
"""

import random

from .common import numbers, pp

# By name, an output made of an input x, a result h of it, and weights w and v.  None is a view: PyTorch's first half
# detaches outputs in place, which it can't do to views.
TENSORS = {
    "a product": lambda m, x, h, w, v: x * w,
    "a loss": lambda m, x, h, w, v: (x * w).sum(),
    "a loss of the result": lambda m, x, h, w, v: (h * v).sum(),
    "one element": lambda m, x, h, w, v: (x * v).sum().reshape(1, 1) * 2,
    "no element": lambda m, x, h, w, v: (x * w)[:0] * 2,
    "a constant": lambda m, x, h, w, v: (x * w).detach(),
    "a constant scalar": lambda m, x, h, w, v: (x * w).sum().detach(),
    "of both weights": lambda m, x, h, w, v: (x * w).sin() * v,
    "of the result": lambda m, x, h, w, v: h * w,
}
SPECIAL = {
    "of weights only": lambda m, x, h, w, v: w * 3,
    "a loss of weights only": lambda m, x, h, w, v: (w * v).sum(),
    "the input": lambda m, x, h, w, v: x,
    "a number": lambda m, x, h, w, v: 7,
    "none": lambda m, x, h, w, v: None,
    "text": lambda m, x, h, w, v: "text",
}
GRADIENTS = ["ones", "ones", "ones", "none", "none", "of another shape", "a number"]


def _outputs(source, depth):
    """Return a nest of names: a name, or (kind of container, members)."""
    if depth == 0 or source.random() < 0.3:
        return source.choice([*TENSORS, *TENSORS, *SPECIAL])
    kind = source.choice([tuple, list, dict])
    return kind, [_outputs(source, depth - 1) for _ in range(source.randrange(1, 4))]


def _gradients(source, outputs, faults):
    """Return names of gradients, nested as the outputs; None for a container, and occasional faults."""
    if isinstance(outputs, str):
        return source.choice(GRADIENTS[: len(GRADIENTS) if faults else 5])
    kind, members = outputs
    if source.random() < 0.15:
        return "none"
    found = [_gradients(source, member, faults) for member in members]
    if faults and source.random() < 0.1:
        found.pop()
    return {tuple: list, list: tuple}.get(kind, dict) if source.random() < 0.2 else kind, found


def _built(nest, leaf):
    if isinstance(nest, str):
        return leaf(nest)
    kind, members = nest
    made = [_built(member, leaf) for member in members]
    return {f"k{i}": member for i, member in enumerate(made)} if kind is dict else kind(made)


def _gradient(m, output, name):
    """Return the gradient of that name for an output."""
    shape = tuple(output.shape) if hasattr(output, "shape") else (3,)
    if name == "none":
        return None
    if name == "a number":
        return 1.5
    return numbers(m, *shape, seed=4) if name == "ones" else numbers(m, *shape, 2)


def _matched(m, output, names):
    """Return the gradients for outputs, by their names."""
    if isinstance(names, str):
        return _gradient(m, output, names)
    kind, members = names
    below = list(output.values()) if isinstance(output, dict) else output
    if not isinstance(below, (tuple, list)):
        below = [None] * len(members)
    made = [_matched(m, o, n) for o, n in zip(below, members, strict=False)]
    return {f"k{i}": g for i, g in enumerate(made)} if kind is dict else kind(made)


def _inputs(source):
    """Return names of inputs, each at most once, and their containers."""
    names = ["x", "h", "w", "unused", "fixed", "a number", "none"]
    return source.sample(names, source.randrange(1, 5)), source.choice([list, tuple, "a generator", "a dict view"])


def _held(kind, values):
    if kind == "a generator":
        return (value for value in values)
    return dict(enumerate(values)).values() if kind == "a dict view" else kind(values)


def _operands(m, earlier):
    made = {name: numbers(m, 3, seed=seed, grad=True) for seed, name in enumerate(["x", "w", "v", "unused"])}
    made["h"] = made["x"].sin()
    made["h"].retain_grad()
    made["fixed"] = numbers(m, 3, seed=9)
    for name in earlier:
        made[name].grad = numbers(m, 3, seed=6)
    return made


def whole_backward(seed):
    """Run a program with `stage_backward`: return its result, and every `.grad` after it."""

    def case(m):
        source = random.Random(seed)
        faults = source.random() < 0.3
        nest = _outputs(source, source.randrange(4))
        names = _gradients(source, nest, faults)
        inputs, holder = _inputs(source)
        earlier = [name for name in ("x", "w", "v", "h", "unused", "fixed") if source.random() < 0.25]
        chosen = None
        if not isinstance(nest, str) and nest[0] is not dict and not isinstance(names, str) and names[0] is not dict:
            among = range(min(len(nest[1]), len(names[1])))
            chosen = source.choice([None, None, source.sample(among, source.randrange(len(among) + 1))])
        made = _operands(m, earlier)
        operands = [made[name] for name in "xhwv"]
        outputs = _built(nest, lambda name: (TENSORS | SPECIAL)[name](m, *operands))
        values = [made.get(name, {"a number": 3}.get(name)) for name in inputs]
        found = pp(m).stage_backward(outputs, _matched(m, outputs, names), _held(holder, values), chosen)
        return found, [made[name].grad for name in ("x", "w", "v", "h", "unused", "fixed")]

    return case


def halves(seed):
    """Run a program with split backward: return the result of the first part, and the gradients of the weights."""

    def case(m):
        source = random.Random(seed)
        names = [source.choice(list(TENSORS)) for _ in range(source.randrange(1, 4))]
        gradients = [source.choice(["ones", "ones", "none"]) for _ in names]
        others = source.sample(["unused", "fixed", "a number", "none"], source.randrange(3))
        earlier = [name for name in ("x", "w", "v", "unused") if source.random() < 0.25]
        made = _operands(m, earlier)
        outputs = [TENSORS[name](m, made["x"], made["x"].sin(), made["w"], made["v"]) for name in names]
        seeds = [_gradient(m, out, name) for out, name in zip(outputs, gradients, strict=True)]
        values = [made.get(name, {"a number": 3}.get(name)) for name in ["x", *others]]
        weights = [made["w"], made["v"]]
        given = None if source.random() < 0.2 else source.choice([list, tuple])(seeds)
        found, groups = pp(m).stage_backward_input(outputs, given, source.choice([list, tuple])(values), iter(weights))
        pp(m).stage_backward_weight(iter(weights), groups)
        return found, [weight.grad for weight in weights]

    return case
