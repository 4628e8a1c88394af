"""The batching rules that users write see operands, in_dims and info as in PyTorch, and errors have its words."""

import pytest
import torch

import retrograd as rg


def scaled(lib, seen, result=lambda out, in_dims: (out, in_dims[0])):
    """Return a Function of any structure of arguments that records what its vmap sees."""

    class Scaled(lib.autograd.Function):
        @staticmethod
        def forward(x, *rest):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.count = len(inputs)

        @staticmethod
        def backward(ctx, g):
            return (g * 2, *(None,) * (ctx.count - 1))

        @staticmethod
        def vmap(info, in_dims, *args):
            leaves = [a[0] if isinstance(a, (tuple, list)) else a for a in args]
            shapes = [tuple(a.shape) if hasattr(a, "shape") else a for a in leaves]
            seen.append((info.batch_size, info.randomness, in_dims, [type(a).__name__ for a in args], shapes))
            return result(Scaled.apply(*args), in_dims)

    return Scaled


PROGRAMS = {
    "in_dims of two arguments": lambda lib, F, x: lib.func.vmap(F.apply, in_dims=(1, 2), out_dims=1)(x, x),
    "negative in_dims": lambda lib, F, x: lib.func.vmap(F.apply, in_dims=(-1, -3))(x, x.movedim(2, 0)),
    "a shared argument": lambda lib, F, x: lib.func.vmap(F.apply, in_dims=(1, None))(x, x),
    "randomness": lambda lib, F, x: lib.func.vmap(F.apply, in_dims=1, randomness="same")(x),
    "numbers and strings": lambda lib, F, x: lib.func.vmap(lambda a: F.apply(a, 3, "s"), in_dims=2)(x),
    "a tuple": lambda lib, F, x: lib.func.vmap(lambda a: F.apply(a, (a, 2.0)), in_dims=1)(x),
    "a list": lambda lib, F, x: lib.func.vmap(lambda a: F.apply(a, [a, 2.0]), in_dims=1)(x),
    "nested batches": lambda lib, F, x: lib.func.vmap(lib.func.vmap(F.apply, in_dims=1), in_dims=2)(x),
    "the gradient of a batch": lambda lib, F, x: lib.func.grad(
        lambda y: lib.func.vmap(F.apply, in_dims=1, out_dims=2)(y).sum()
    )(x),
    "a batch of gradients": lambda lib, F, x: lib.func.vmap(lib.func.grad(lambda a: F.apply(a).sum()), in_dims=1)(x),
    "chunks": lambda lib, F, x: lib.func.vmap(F.apply, in_dims=1, chunk_size=2)(x),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_vmap_of_a_function_sees_what_the_caller_gave(program):
    found = []
    for lib in (rg, torch):
        seen = []
        x = lib.arange(27.0).reshape(3, 3, 3)
        found.append((seen, PROGRAMS[program](lib, scaled(lib, seen), x).tolist()))
    assert found[0] == found[1]
    assert found[0][0]


def test_a_vmap_that_writes_to_its_argument_writes_to_the_callers_tensor():
    found = []
    for lib in (rg, torch):

        class Doubled(lib.autograd.Function):
            @staticmethod
            def forward(x):
                return x.mul_(2)

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.mark_dirty(*inputs)

            @staticmethod
            def vmap(info, in_dims, x):
                return x.mul_(2), in_dims[0]

        x = lib.ones(2, 3)
        out = lib.func.vmap(lambda x, F=Doubled: F.apply(x).add_(1), in_dims=1, out_dims=1)(x)
        found.append((x.tolist(), out.tolist()))
    assert found[0] == found[1]


RESULTS = {
    "no out_dims": (lambda out, in_dims: out, "Expected the vmap staticmethod to have two returns"),
    "too many out_dims": (lambda out, in_dims: (out, (0, 0)), "returned an incompatible (output, out_dims) tuple"),
    "an out_dim out of range": (lambda out, in_dims: (out, 7), "Dimension out of range (expected to be in range of"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_a_vmap_that_do_not_fit_are_refused_in_pytorchs_words(name):
    result, words = RESULTS[name]
    for lib in (rg, torch):
        with pytest.raises((RuntimeError, IndexError)) as caught:
            lib.func.vmap(scaled(lib, [], result).apply)(lib.ones(2, 3))
        assert words in str(caught.value)


@pytest.mark.parametrize("in_dims", [(1, -1), (None, 1), (1, None)])
def test_the_rule_of_a_custom_operator_sees_what_the_caller_gave(in_dims):
    found = []
    for lib in (rg, torch):
        seen = []
        define = lib.library.custom_op(
            f"rules::sum_{str(in_dims[0]).strip('-')}_{str(in_dims[1]).strip('-')}_x",
            mutates_args=(),
            schema="(Tensor[] xs, Tensor y) -> Tensor",
        )
        op = define(lambda xs, y: xs[0] * y)

        def rule(info, in_dims, xs, y, seen=seen):
            seen.append((*info, in_dims, tuple(xs[0].shape), tuple(y.shape)))
            return y * xs[0].sum(), in_dims[1]

        op.register_vmap(rule)
        x = lib.arange(9.0).reshape(3, 3)
        out = lib.func.vmap(lambda a, b, op=op: op([a, x], b), in_dims=in_dims)(x, x)  # noqa: B023
        found.append((seen, out.tolist()))
    assert found[0] == found[1]
