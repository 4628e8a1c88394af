"""Every operator on every sample: a compiled call gives the bits of the eager one, and so do its gradients."""

import warnings

import pytest

import retrograd as rg
from retrograd.core import Tensor, call, registry
from retrograd.testing import samples_of, seeded

from ..tables import hold, operators_on_arrays
from .comparison import observe

# Why calls of some operators run eagerly; each operator with such a sample is listed.
EAGER = {
    "depends on values": """
        argwhere bincount masked_select nonzero nonzero_indices pdist repeat_indices repeat_interleave unique
        unique_consecutive unique_indices unique_values unique_runs
    """,
    "reads the value of a tensor": "as_strided as_strided_scatter ctc_loss linalg.lstsq",
    "of retrograd.fx.operators": "pick guard overwritten",
    "is a view of a kind": "adjoint",
}


def on_tensors(op, args, params):
    """Return a sample's operator as a function of its tensors, with a backward pass if they require grad."""
    positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    rest = [None if isinstance(a, Tensor) else a for a in args]

    def f(*tensors):
        full = list(rest)
        for i, t in zip(positions, tensors, strict=True):
            full[i] = t
        outs = call(op, tuple(full), params)
        outs = list(outs) if isinstance(outs, tuple) else [outs]
        roots = [o for o in outs if isinstance(o, Tensor) and o.requires_grad]
        if roots:
            rg.autograd.backward(roots, [rg.ones_like(o) for o in roots])
        return [o.detach() if o.requires_grad else o for o in outs]

    return f, [args[i] for i in positions]


def result(f, leaves):
    for t in leaves:
        t.grad = None
    with seeded(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        out = f(*leaves)
    return observe(out), [None if t.grad is None else observe(t.grad) for t in leaves]


def law_compiled(op, args, params):
    """Check that the captured and the compiled call give the eager call's bits, with and without a backward pass."""
    f, tensors = on_tensors(op, args, params)
    for recorded in (False, True):
        leaves = [t.detach() for t in tensors]
        if recorded:
            leaves = [t.requires_grad_() if t.dtype.kind in "fc" else t for t in leaves]
        try:
            expected = result(f, leaves)
        except (RuntimeError, NotImplementedError):
            continue  # it has no gradient
        compiled = rg.compile(f)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert result(compiled, leaves) == expected
        reasons = [*compiled._refused.values()]
        if reasons:
            assert any(why in reasons[0] and op.name in names.split() for why, names in EAGER.items()), reasons
        else:
            assert result(compiled, leaves) == expected


@pytest.mark.parametrize("name", operators_on_arrays())
def test_compiled_is_run(name):
    hold(law_compiled, registry[name], list(samples_of(registry[name])))
