"""Every operator on every sample: a compiled call gives the bits of the eager one, and so do its gradients."""

import warnings

import pytest

import retrograd as rg
from retrograd.core import Tensor, call, registry
from retrograd.testing import samples_of, seeded

from ..tables import first_samples, hold, operators_on_arrays
from .comparison import observe

# Why calls of some operators run eagerly; each operator with such a sample is listed.
EAGER = {
    "depends on values": """
        argwhere bincount masked_select nonzero nonzero_indices pdist repeat_indices repeat_interleave unique
        unique_consecutive unique_indices unique_values unique_runs
    """,
    "reads the value of a tensor": "as_strided as_strided_scatter ctc_loss linalg.lstsq",
    "of retrograd.fx.operators": "pick guard overwritten",
    "of retrograd.implicit": "implicit_solution",
    "of retrograd.higher_order": """
        higher_order.cond higher_order.linked_result higher_order.scan higher_order.while_loop
    """,
    "of retrograd.pipelining": "add_gradients pipe_split stage_backward",
    "suppresses exceptions": "count_into_boxes",
    "is a view of a kind": "adjoint",
}
EAGER_BACKWARD = {"linalg.lstsq"}  # its rule reads the rank


def with_backward_pass(f):
    """Return a function that runs the backward pass from the results of another one, too."""

    def run(*tensors):
        outs = f(*tensors)
        run_backward(outs)
        return [o.detach() if isinstance(o, Tensor) and o.requires_grad else o for o in outs]

    return run


def run_backward(outs):
    """Run a backward pass from all results that require grad."""
    roots = [o for o in outs if isinstance(o, Tensor) and o.requires_grad]
    if roots:
        rg.autograd.backward(roots, [rg.ones_like(o) for o in roots])


def on_tensors(op, args, params):
    """Return a sample's operator as a function of its tensors."""
    positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    rest = [None if isinstance(a, Tensor) else a for a in args]

    def f(*tensors):
        full = list(rest)
        for i, t in zip(positions, tensors, strict=True):
            full[i] = t
        outs = call(op, tuple(full), params)
        return list(outs) if isinstance(outs, tuple) else [outs]

    return f, [args[i] for i in positions]


def copies(tensors, recorded):
    """Return copies of tensors, since operators may write to them, with the same strides; as leaves if recorded."""
    made = [rg.from_numpy(t.detach().numpy().copy(order="K")) for t in tensors]
    return [t.requires_grad_() if recorded and t.dtype.kind in "fc" else t for t in made]


def result(f, leaves, outside):
    """Return what is observed of a call, and of a backward pass from its results if it comes after the call."""
    with seeded(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        outs = f(*leaves)
        seen = observe(outs)
        if outside:
            run_backward(outs)
    return seen, [None if t.grad is None else observe(t.grad) for t in leaves]


# Without a graph; with a graph that is used up in the call, or after it.
CASES = {"plain": (False, False), "backward inside": (True, False), "backward outside": (True, True)}


def law_compiled(op, args, params, every=True):
    """Check that the captured and the compiled call give the eager call's bits, with and without a backward pass.

    In every case, or in the last one that the operator has: results and gradients together.
    """
    forward, tensors = on_tensors(op, args, params)
    for case, (recorded, outside) in CASES.items() if every else reversed(CASES.items()):
        f = with_backward_pass(forward) if case == "backward inside" else forward
        try:
            expected = result(f, copies(tensors, recorded), outside)
        except (RuntimeError, NotImplementedError):
            continue  # it has no gradient
        compiled = rg.compile(f)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for _ in range(3 if outside else 2):
                assert result(compiled, copies(tensors, recorded), outside) == expected, case
        reasons = [*compiled._refused.values()]
        if reasons:
            assert any(why in reasons[0] and op.name in names.split() for why, names in EAGER.items()), (case, reasons)
        elif outside:
            passes = [run for program in compiled.programs for run in backward_programs(program)]
            assert None not in passes or op.name in EAGER_BACKWARD, "a backward pass runs eagerly"
        if not every:
            break


def law_compiled_in_one_case(op, args, params):
    """Check the last case that the operator has."""
    law_compiled(op, args, params, every=False)


def backward_programs(program):
    """Return the programs of the backward passes of a program."""
    return [] if program.graph is None else program.graph.programs.values()


# The sample of `write` has its target among the parameters, and changes it in each call.
@pytest.mark.parametrize("name", [name for name in operators_on_arrays() if name != "write"])
def test_compiled_is_run(name):
    samples = list(samples_of(registry[name]))
    first = first_samples(samples)
    hold(law_compiled, registry[name], first)
    hold(law_compiled_in_one_case, registry[name], samples[len(first) :])
