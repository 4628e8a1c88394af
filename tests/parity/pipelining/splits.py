"""Parity cases of models split into stages: number, parameters, and results of the pipe."""

import optree

from .common import filled, numbers, pp


def sequential(m, layers=3):
    """Return linear layers with activations between them."""
    parts = []
    for _ in range(layers):
        parts += [m.nn.Linear(4, 4), m.nn.Tanh()]
    return filled(m, m.nn.Sequential(*parts))


def written(m, forward, **parts):
    """Return a model of these parts, with a forward(self, m, x, ...)."""

    class Model(m.nn.Module):
        def __init__(self):
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, *args, **kwargs):
            return forward(self, m, *args, **kwargs)

    return filled(m, Model())


def described(m, model, args, kwargs=None, **options):
    """Return the number of stages, their parameters, and the pipe's result: PyTorch's pipe returns it flat."""
    pipe = pp(m).pipeline(model, args, kwargs, **options)
    keys = [sorted(pipe.get_stage_module(i).state_dict()) for i in range(pipe.num_stages)]
    return pipe.num_stages, keys, optree.tree_leaves(pipe(*args, **(kwargs or {}))), pipe.info().num_stages


def by_spec(**spec):
    """Split a sequential model at some of its layers."""

    def case(m):
        points = {path.lstrip("_"): getattr(pp(m).SplitPoint, kind) for path, kind in spec.items()}
        return described(m, sequential(m), (numbers(m, 2, 4),), split_spec=points)

    return case


def marked(forward, arguments=1, **sizes):
    """Return a model whose code marks its stages; sizes: of its linear layers."""

    def case(m):
        parts = {name: m.nn.Linear(*size) for name, size in sizes.items()}
        return described(m, written(m, forward, **parts), tuple(numbers(m, 3, 4, seed=i + 5) for i in range(arguments)))

    return case


def chain(self, m, x):
    x = self.a(x)
    pp(m).pipe_split()
    x = self.b(x).relu()
    pp(m).pipe_split()
    return self.c(x)


def skipping(self, m, x):
    first = self.a(x)
    pp(m).pipe_split()
    second = self.b(first).tanh()
    pp(m).pipe_split()
    return self.c(second) + first


def two_inputs(self, m, x, y):
    x = self.a(x)
    pp(m).pipe_split()
    return self.b(x) * y


def several_outputs(self, m, x):
    first = self.a(x)
    pp(m).pipe_split()
    return first, self.b(first)


def a_dict(self, m, x):
    first = self.a(x)
    pp(m).pipe_split()
    return {"first": first, "second": self.b(first)}


def twice(self, m, x):
    x = self.a(x)
    pp(m).pipe_split()
    return self.a(x)


def only_in_the_second(self, m, x):
    x = x * 2
    pp(m).pipe_split()
    return self.a(x)


def without_a_mark(self, m, x):
    return self.a(x)


def branch(self, m, x):
    x = self.a(x)
    pp(m).pipe_split()
    return self.b(x) if x.sum() > -1000 else x


def a_mark_at_the_end(self, m, x):
    x = self.b(self.a(x))
    pp(m).pipe_split()
    return x


def two_marks(self, m, x):
    x = self.a(x)
    pp(m).pipe_split()
    pp(m).pipe_split()
    return self.b(x)


def writing(change):
    """Return the state of a model that writes to its input, a parameter or a buffer, before and after two runs."""

    def case(m):
        def forward(self, m, x):
            return change(self, m, x)

        def make():
            model = written(m, forward, a=m.nn.Linear(4, 4), b=m.nn.Linear(4, 4))
            model.register_buffer("seen", numbers(m, 4, seed=3))
            return model

        model, x = make(), numbers(m, 2, 4)
        pipe = pp(m).pipeline(model, (numbers(m, 2, 4),))
        outs = [optree.tree_leaves(pipe(x))[0].detach() for _ in range(2)]
        state = {k: v for i in range(pipe.num_stages) for k, v in pipe.get_stage_module(i).state_dict().items()}
        return pipe.num_stages, outs, x, [state[key] for key in sorted(state)]

    return case


def to_the_input(self, m, x):
    h = self.a(x)
    pp(m).pipe_split()
    x.mul_(2)
    return self.b(h) + x


def to_a_parameter(self, m, x):
    with m.no_grad():
        self.a.weight.clamp_(-0.1, 0.1)
    h = self.a(x)
    pp(m).pipe_split()
    return self.b(h)


def to_a_buffer(self, m, x):
    h = self.a(x)
    pp(m).pipe_split()
    self.seen.add_(1)
    return self.b(h) + self.seen


def to_a_buffer_read_before(self, m, x):
    h = self.a(x + self.seen)
    pp(m).pipe_split()
    self.seen.add_(1)
    return self.b(h)


def keyword(m):
    def forward(self, m, x, *, scale):
        x = self.a(x)
        pp(m).pipe_split()
        return self.b(x) * 2 + scale

    model = written(m, forward, a=m.nn.Linear(4, 4), b=m.nn.Linear(4, 4))
    return described(m, model, (numbers(m, 3, 4),), {"scale": numbers(m, 3, 4, seed=2)})


def nested(m):
    model = m.nn.Sequential(m.nn.Sequential(m.nn.Linear(4, 4), m.nn.Linear(4, 4)), m.nn.Linear(4, 4))
    return described(m, filled(m, model), (numbers(m, 2, 4),), split_spec={"0.1": pp(m).SplitPoint.BEGINNING})


def buffers(m):
    model = written(m, chain, a=m.nn.Linear(4, 4), b=m.nn.Linear(4, 4), c=m.nn.Linear(4, 4))
    model.register_buffer("unused", numbers(m, 2))
    return described(m, model, (numbers(m, 3, 4),))


def eager(m):
    before = pp(m).pipe_split()
    return before, sequential(m)(numbers(m, 2, 4))


def from_a_pipe(question):
    """Query a pipe of two stages."""

    def case(m):
        spec = {"2": pp(m).SplitPoint.BEGINNING}
        return question(m, pp(m).pipeline(sequential(m), (numbers(m, 2, 4),), split_spec=spec))

    return case


def one_by_one(m, pipe):
    x = numbers(m, 2, 4)
    for i in range(pipe.num_stages):
        x = pipe.get_stage_module(i)(x)
        x = x[0] if isinstance(x, (tuple, list)) else x
    return x


def gradients(m, pipe):
    optree.tree_leaves(pipe(numbers(m, 2, 4)))[0].sum().backward()
    found = [p.grad for i in range(pipe.num_stages) for p in pipe.get_stage_module(i).parameters()]
    return sorted(float(g.sum()) for g in found)


def refused(**options):
    """Try an impossible split."""

    def case(m):
        given = {name: make(m) for name, make in options.items()}
        return described(m, sequential(m), (numbers(m, 2, 4),), **given)

    return case


SPLITS = {
    "before a layer": by_spec(_2="BEGINNING"),
    "after a layer": by_spec(_1="END"),
    "before and after": by_spec(_2="BEGINNING", _3="END"),
    "at every layer": by_spec(_0="END", _1="END", _2="END", _3="END", _4="END"),
    "before one and after the one before it": by_spec(_1="END", _2="BEGINNING"),
    "before the first": by_spec(_0="BEGINNING"),
    "after the last": by_spec(_5="END"),
    "nowhere": by_spec(),
    "inside a nested module": nested,
    "marks in the code": marked(chain, a=(4, 5), b=(5, 6), c=(6, 2)),
    "a skip connection": marked(skipping, a=(4, 4), b=(4, 4), c=(4, 4)),
    "an input for each stage": marked(two_inputs, 2, a=(4, 4), b=(4, 4)),
    "several outputs": marked(several_outputs, a=(4, 4), b=(4, 4)),
    "a dict as output": marked(a_dict, a=(4, 4), b=(4, 4)),
    "a module called in two stages": marked(twice, a=(4, 4)),
    "a stage without parameters": marked(only_in_the_second, a=(4, 4)),
    "no mark": marked(without_a_mark, a=(4, 4)),
    "a branch on a value": marked(branch, a=(4, 4), b=(4, 4)),
    "a keyword argument": keyword,
    "a mark at the end": marked(a_mark_at_the_end, a=(4, 4), b=(4, 4)),
    "two marks at one place": marked(two_marks, a=(4, 4), b=(4, 4)),
    "a write to the input": writing(to_the_input),
    "a write to a parameter": writing(to_a_parameter),
    "a write to a buffer": writing(to_a_buffer),
    "a write to a buffer that an earlier stage reads": writing(to_a_buffer_read_before),
    "a buffer that nobody uses": buffers,
    "a mark outside of a capture": eager,
}

PIPES = {
    "stage after stage": from_a_pipe(one_by_one),
    "gradients": from_a_pipe(gradients),
    "stage -1": from_a_pipe(lambda m, pipe: pipe.get_stage_module(-1)),
    "stage 2 of 2": from_a_pipe(lambda m, pipe: pipe.get_stage_module(2)),
    "what is known": from_a_pipe(lambda m, pipe: (pipe.info().num_stages, pipe.info().has_loss_and_backward)),
    "too many arguments": from_a_pipe(lambda m, pipe: len(pipe(numbers(m, 2, 4), numbers(m, 2, 4)))),
    "too few arguments": from_a_pipe(lambda m, pipe: pipe()),
    "an unknown keyword": from_a_pipe(lambda m, pipe: pipe(numbers(m, 2, 4), scale=2)),
    "names of the stages' modules": from_a_pipe(
        lambda m, pipe: [len(list(pipe.get_stage_module(i).parameters())) for i in range(2)]
    ),
}

REFUSED = {
    "a path that does not exist": refused(split_spec=lambda m: {"nine": pp(m).SplitPoint.END}),
    "a path below what does not exist": refused(split_spec=lambda m: {"nine.one": pp(m).SplitPoint.END}),
    "a path below a layer": refused(split_spec=lambda m: {"0.nine": pp(m).SplitPoint.END}),
    "an unknown kind": refused(split_spec=lambda m: {"0": "END"}),
    "both ways at once": refused(
        split_spec=lambda m: {"2": pp(m).SplitPoint.BEGINNING}, split_policy=lambda m: lambda captured: captured
    ),
}
