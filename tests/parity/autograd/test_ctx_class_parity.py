"""The ctx of a Function has the members of PyTorch's, and nodes of Functions are instances of its class."""

from .adapter import data, leaf, parity


def double(m, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2):
    """Return a Function that doubles, with another forward or backward."""
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(m.autograd.Function)("Double", (m.autograd.Function,), body)


@parity
def test_nodes_and_ctx_are_instances_of_the_backward_class(m):
    seen = []

    def forward(ctx, x):
        seen.append(ctx)
        return x * 2

    function = double(m, forward)
    node = function.apply(leaf(m, 2)).grad_fn
    base, own = m.autograd.function.BackwardCFunction, function._backward_cls
    found = [isinstance(x, kind) for x in (node, seen[0], 3) for kind in (base, own)]
    other = double(m)._backward_cls
    return found, isinstance(node, other), own.__name__, issubclass(own, base), type(seen[0]).__name__, node.name()


@parity
def test_the_metaclass_of_functions(m):
    meta = m.autograd.function.FunctionMeta
    return type(m.autograd.Function) is meta, isinstance(double(m), meta), type(double(m)).__name__


@parity
def test_nodes_are_of_a_subclass_of_node(m):
    node = (leaf(m, 2) * 2).grad_fn
    accumulator = node.next_functions[0][0]
    kinds = (type(node), type(accumulator), type(double(m).apply(leaf(m, 2)).grad_fn), int)
    return [issubclass(kind, m.autograd.graph.Node) for kind in kinds]


@parity
def test_what_forward_marks_and_saves_can_be_read_from_ctx(m):
    found = []

    def forward(ctx, x):
        y, z = x.add_(1), x * 3
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(z)
        ctx.save_for_backward(y, z)
        ctx.save_for_forward(z)
        marked = ctx.dirty_tensors, ctx.non_differentiable, ctx.to_save, ctx.saved_for_forward
        found.extend(data(tuple(values)) for values in marked)
        return y, z

    double(m, forward, lambda ctx, g, h: g).apply(leaf(m, 2) * 1)
    return found


@parity
def test_ctx_has_the_members_of_its_node_in_backward(m):
    found = []

    def backward(ctx, g):
        ctx.metadata["mine"] = 3
        made = [node.name().rpartition(":")[2] for node, _ in ctx.next_functions]
        found.append((ctx.name(), made, ctx.metadata, ctx.needs_input_grad))
        return g * 2

    y = double(m, backward=backward).apply(leaf(m, 2))
    y.sum().backward()
    return found, y.grad_fn.metadata


@parity
def test_hooks_of_the_ctx_are_those_of_its_node(m):
    found = []

    def forward(ctx, x):
        ctx.register_hook(lambda inputs, outputs: found.append(("after", data(inputs), data(outputs))))
        ctx.register_prehook(lambda outputs: found.append(("before", data(outputs))))
        return x * 2

    double(m, forward).apply(leaf(m, 2)).sum().backward()
    return found


@parity
def test_the_rules_can_be_called_on_ctx(m):
    function = double(m)
    function.jvp = staticmethod(lambda ctx, t: t * 5)
    node = function.apply(leaf(m, 2)).grad_fn
    return node.apply(m.ones(2)), node.apply_jvp(m.ones(2))


@parity
def test_the_ctx_of_a_call_that_is_not_recorded(m):
    found = []

    def forward(ctx, x):
        found.append((ctx.name(), len(ctx.next_functions), dict(ctx.metadata), ctx.needs_input_grad))
        return x * 2

    double(m, forward).apply(m.ones(2))
    return found
