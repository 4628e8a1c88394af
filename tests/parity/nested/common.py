"""Helpers of the parity cases of nested tensors: each case is a function of m, which is retrograd or PyTorch."""

from functools import partial

from ..func.common import x

LENGTHS = (3, 1, 4)


def rows(m, lengths=LENGTHS, width=4, seed=1):
    """Return components of these lengths."""
    return [x(m, n, width, seed=seed + i) for i, n in enumerate(lengths)]


def nested(m, layout="jagged", lengths=LENGTHS, width=4, seed=1):
    """Return a nested tensor of random values, of shape (components, j, width)."""
    return m.nested.nested_tensor(rows(m, lengths, width, seed), layout=getattr(m, layout))


def ids(m, layout="jagged", most=5, lengths=LENGTHS):
    """Return a nested tensor of integers from 0 to below `most`, of shape (components, j)."""
    parts = [m.arange(n) * 3 % most for n in lengths]
    return m.nested.nested_tensor(parts, layout=getattr(m, layout))


def functional(m):
    return m.nn.functional


def twin(m, x):
    """Return a nested tensor of other values, of the same sizes and layout but constructed separately."""
    return nested(m, "jagged" if x.layout == m.jagged else "strided", seed=9)


def other(m, x):
    """Return one of other sizes."""
    return nested(m, "jagged" if x.layout == m.jagged else "strided", lengths=(3, 2, 4), seed=9)


def classes(m, x):
    """Return a class for each row."""
    parts = [m.arange(n) * 3 % 4 for n in (3, 1, 4)]
    return m.nested.nested_tensor(parts, layout=x.layout)


def as_lists(value):
    """Return a result with nested tensors as lists of their components."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(as_lists, value)) if type(value) in (tuple, list) else tuple(map(as_lists, value))
    return ["nested", *map(as_lists, value.unbind())] if getattr(value, "is_nested", False) else value


def answer(function, layout, m):
    """Return the result of a function of the library and a nested tensor."""
    return as_lists(function(m, nested(m, layout)))


def gradients(function, layout, m):
    """Return the derivatives of the sum of the squares of the result, with respect to each component."""
    leaves = [part.requires_grad_() for part in rows(m)]
    out = function(m, m.nested.as_nested_tensor(leaves, layout=getattr(m, layout)))
    parts = out.unbind() if getattr(out, "is_nested", False) else [out]
    sum((part * part).sum() for part in parts).backward()
    return [leaf.grad for leaf in leaves]


def jagged(functions, of=answer):
    """Return cases of functions of the library and a nested tensor with one ragged dimension."""
    return {name: partial(of, function, "jagged") for name, function in functions.items()}


def strided(functions, names, of=answer):
    """Return cases in the layout for components of any shape, for which PyTorch has few operators."""
    return {f"{name}, strided": partial(of, functions[name], "strided") for name in names}


def plain(programs):
    """Return cases of functions of the library that construct their nested tensors themselves."""
    return {name: partial(_result_as_lists, program) for name, program in programs.items()}


def _result_as_lists(program, m):
    return as_lists(program(m))
