"""Helpers of the parity cases of custom operators: each case is a function of the library m, `rg` or `torch`."""

import itertools

import numpy as np
import torch
import torch._custom_op.impl

import retrograd as rg

NAMESPACE = "parity_library"
numbers = itertools.count()


def fresh():
    """Return an unused name."""
    return f"op{next(numbers)}"


def newer(m, schema, kernel, mutates=(), **kwargs):
    """Return an operator of the newer API."""
    return m.library.custom_op(f"{NAMESPACE}::{fresh()}", kernel, mutates_args=mutates, schema=schema, **kwargs)


def with_formula(m, schema, kernel, backward, setup=None):
    """Return one with a gradient formula."""
    op = newer(m, schema, kernel)
    op.register_autograd(backward, setup_context=setup)
    return op


def older(m, schema, kernel=None, name=None):
    """Return an operator of the older API: a prototype of the schema's arguments, and a kernel for the CPU."""
    name = name or fresh()
    arguments = schema[1 : schema.index(") ->")].split(", ")
    scope = {}
    exec(f"def {name}({', '.join(a.split()[-1] for a in arguments)}): ...", scope)
    custom_op = rg.library.custom_op if m is rg else torch._custom_op.impl.custom_op
    op = custom_op(f"{NAMESPACE}::{name}", schema)(scope[name])
    if m is torch:  # which registers its indirection itself, and then takes it for somebody else's
        op._registered_autograd_kernel_indirection = True
    if kernel is not None:
        op.impl("cpu")(kernel)
    return op


def with_pair(m, schema, kernel, backward, save=lambda inputs, output: None, marks=None):
    """Return one with the pair of save and backward."""
    op = older(m, schema, kernel)
    op.impl_save_for_backward()(save)
    op.impl_backward(output_differentiability=marks)(backward)
    return op


def leaf(m, *values):
    """Return a leaf that requires grad."""
    return m.tensor(values, dtype=m.float64, requires_grad=True)


def plain(m, *values):
    """Return a tensor that does not require grad."""
    return m.tensor(values, dtype=m.float64)


def of_numpy(m, array):
    """Return a tensor of an array."""
    return m.from_numpy(np.ascontiguousarray(array))


def keep(m):
    """Save all tensors: a setup_context."""

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*[x for x in inputs if isinstance(x, m.Tensor)])

    return setup_context


def twice(make, *, retain):
    """Run two backward passes through the operator that `make` makes; the first retains or frees its graph."""

    def case(m):
        x = leaf(m, 2.0)
        out = make(m)(x).sum()
        out.backward(retain_graph=retain)
        out.backward()
        return x.grad

    return case


def hooked(make):
    """Return the calls of saved tensor hooks for the operator that `make` makes, and the gradient."""

    def case(m):
        seen = []
        x = leaf(m, 2.0)

        def pack(t):
            seen.append(t.detach().clone())
            return t

        with m.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            out = make(m)(x)
        out.sum().backward()
        return seen, x.grad

    return case
