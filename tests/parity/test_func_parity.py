"""Function transforms against torch.func: the same programs give the same numbers, structures and kinds of errors."""

import pytest

from .func import batches, derivatives, jacobians, models, nesting, rewrites
from .programs import assert_agreement, cases

TABLES = {
    "grad": derivatives.GRAD,
    "vjp": derivatives.VJP,
    "jvp": derivatives.JVP,
    "linearize": derivatives.LINEARIZE,
    "jacobians": jacobians.JACOBIANS,
    "vmap": batches.FORMS,
    "vmap misused": batches.MISUSE,
    "vmap randomness": batches.RANDOM,
    "vmap over": batches.BATCHED,
    "pairs": nesting.PAIRS,
    "triples": nesting.TRIPLES,
    "functional_call": models.CALLS,
    "stack_module_state": models.STACKS,
    "programs": models.PROGRAMS,
    "functionalize": rewrites.FUNCTIONALIZED,
    "debug_unwrap": rewrites.UNWRAPPED,
}
CASES = cases(TABLES)

NONE = "None is a tree without leaves, so that results and arguments may be missing"
NUMBERS = "numbers are taken for tensors wherever a tensor is asked for"
AUX = "what is auxiliary is handed on as it is"
DTYPE = "another dtype is more often a mistake than meant; .to(dtype) says that it is meant"
INSIDE = "backward() and autograd.grad work inside transforms too"
SHAPES = "shapes that do not fit are a ValueError throughout"

# Where the results differ: the outcome of ours, the kind of error or "answers", and why.
DEVIATIONS = {
    "grad: of a tree with None": ("answers", NONE),
    "grad: argnums True": ("RuntimeError", "a bool is no number of an argument"),
    "grad: an integer output": ("RuntimeError", "it has no derivative; a gradient of zeros would hide the mistake"),
    "grad: has_aux of anything": ("answers", AUX),
    "grad: a float argument": ("answers", NUMBERS),
    "grad: a string argument": ("TypeError", "what can be no tensor is refused where it is made one"),
    "grad: with no_grad in the inner of two": (
        "answers",
        "no_grad is of the level that it is in",
    ),
    "vjp: has_aux of anything": ("answers", AUX),
    "vjp: an output with None": ("answers", NONE),
    "vjp: a cotangent of another dtype": ("RuntimeError", DTYPE),
    "vjp: a number as cotangent": ("RuntimeError", "the kind of error that jvp has for a number as tangent"),
    "vjp: an integer output": ("answers", "it may stand beside others, and its cotangent goes nowhere"),
    "jvp: has_aux of anything": ("answers", AUX),
    "jvp: a tangent of another dtype": ("RuntimeError", DTYPE),
    "jvp: a number as primal": ("answers", NUMBERS),
    "jvp: an output with None": ("answers", NONE),
    "jvp: an argument written with itself": ("answers", "PyTorch's derivative of v.mul_(v) is twice the true one"),
    "linearize: an output that is no tensor": ("RuntimeError", "as in jvp"),
    "linearize: no primals": ("RuntimeError", "as in jvp"),
    "jacobians: jacfwd argnums -1": ("answers", "PyTorch's is all zeros"),
    "jacobians: jacfwd argnums (-1, 0)": ("answers", "PyTorch's has zeros for argument -1"),
    "jacobians: jacfwd no inputs": ("answers", "PyTorch trips over having no columns"),
    "jacobians: jacrev a float input": ("answers", NUMBERS),
    "jacobians: jacfwd a float input": ("answers", NUMBERS),
    "jacobians: jacrev a keyword": ("answers", "keywords go to the function, as in grad"),
    "jacobians: jacfwd a keyword": ("answers", "keywords go to the function, as in grad"),
    "vmap: a captured output at 1": ("answers", "PyTorch takes the wrong dimension for the new one"),
    "vmap: requires_grad inside": ("answers", INSIDE),
    "vmap: autograd inside": ("answers", INSIDE),
    "vmap: a shared tensor written with a batch": (
        "answers",
        "above the ground a write makes a new value",
    ),
    "vmap misused: an output with None": ("answers", NONE),
    "vmap randomness: bernoulli, same": ("answers", "PyTorch has it for tensors that are the same for all examples"),
    "vmap over: one_hot, gradient": ("answers", "PyTorch reads the values, though the number of classes is given"),
    "functional_call: buffers of two dicts": (
        "answers",
        "what is new comes back in all dicts",
    ),
    "stack_module_state: of two depths": ("RuntimeError", "PyTorch leaves out what the first model does not have"),
    "functionalize: in grad": ("answers", "PyTorch has no derivative of its copy"),
    "functionalize: in jvp": ("answers", "PyTorch has no derivative of its copy"),
    "functionalize: of functionalize": ("answers", "PyTorch fails an assertion"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_agrees_with_torch(name):
    assert_agreement(CASES[name], DEVIATIONS.get(name))


def test_every_deviation_is_one_of_a_case():
    assert DEVIATIONS.keys() <= CASES.keys()
