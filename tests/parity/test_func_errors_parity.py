"""Mistakes in calls of function transforms raise PyTorch's classes of errors, with PyTorch's telling words."""

import pytest
import torch

import retrograd as rg

WORDS = {
    "in_dims of another type": (lambda lib, f: f.vmap(lib.sin, [0])(lib.ones(2)), "expected `in_dims` to be int or a"),
    "no inputs": (lambda lib, f: f.vmap(lambda: 1)(), "got no inputs"),
    "nothing batched": (
        lambda lib, f: f.vmap(lib.sin, (None,))(lib.ones(2)),
        "Expected at least one Tensor to vmap over",
    ),
    "in_dims of another structure": (
        lambda lib, f: f.vmap(lib.sin, (0, 0))(lib.ones(2)),
        "in_dims is not compatible with the structure of `inputs`",
    ),
    "an in_dim that is no int": (
        lambda lib, f: f.vmap(lib.sin, (0.5,))(lib.ones(2)),
        "Got in_dim=0.5 for an input but in_dim must be either an integer dimension or None",
    ),
    "an in_dim of a number": (
        lambda lib, f: f.vmap(lib.sin, (0,))(3.0),
        "Got in_dim=0 for an input but the input is of type <class 'float'>. We cannot vmap over non-Tensor arguments",
    ),
    "an in_dim out of range": (
        lambda lib, f: f.vmap(lib.sin, 2)(lib.ones(2)),
        "Got in_dim=2 for some input, but that input is a Tensor of dimensionality 1 so expected in_dim to satisfy "
        "-1 <= in_dim < 1",
    ),
    "sizes that differ": (
        lambda lib, f: f.vmap(lib.mul)(lib.ones(2), lib.ones(3)),
        "Expected all tensors to have the same size in the mapped dimension, got sizes [2, 3] for the mapped dimension",
    ),
    "a result that is a number": (lambda lib, f: f.vmap(lambda x: 3.0)(lib.ones(2)), "got type <class 'float'>"),
    "a result that is None": (lambda lib, f: f.vmap(lambda x: None)(lib.ones(2)), "got type <class 'NoneType'>"),
    "a batched result without out_dim": (
        lambda lib, f: f.vmap(lambda x: x, out_dims=None)(lib.ones(2)),
        "can not return a BatchedTensor when out_dim is None",
    ),
    "out_dims of another type": (
        lambda lib, f: f.vmap(lambda x: x, out_dims="a")(lib.ones(2)),
        "`out_dims` must be an int, None or a python collection of ints",
    ),
    "out_dims of another structure": (
        lambda lib, f: f.vmap(lambda x: x, out_dims=(0, 0))(lib.ones(2)),
        "out_dims is not compatible with the structure of `outputs`",
    ),
    "an unknown randomness": (
        lambda lib, f: f.vmap(lib.sin, randomness="some")(lib.ones(2)),
        "Only allowed values for randomness are 'error', 'different', or 'same'. Got some",
    ),
    "random numbers": (
        lambda lib, f: f.vmap(lambda x: x + lib.rand(2))(lib.ones(2)),
        "called random operation while in randomness error mode",
    ),
    "a chunk of no examples": (
        lambda lib, f: f.vmap(lib.sin, chunk_size=0)(lib.ones(2)),
        "chunk_size should be None or greater than 0. (got 0)",
    ),
    "argnums out of range": (
        lambda lib, f: f.jacrev(lib.sin, 5)(lib.ones(2)),
        "Got argnum=5, but only 1 positional inputs",
    ),
    "equal argnums": (lambda lib, f: f.jacrev(lib.sin, (0, 0))(lib.ones(2)), "argnums elements must be unique"),
    "no argnums": (lambda lib, f: f.jacrev(lib.sin, ())(lib.ones(2)), "argnums must be non-empty"),
    "argnums of another type": (
        lambda lib, f: f.jacrev(lib.sin, [0])(lib.ones(2)),
        "argnums must be int or Tuple[int, ...], got",
    ),
    "a function without results": (
        lambda lib, f: f.jacrev(lambda x: ())(lib.ones(2)),
        "Expected f to be a function that has non-empty output",
    ),
    "a function of numbers": (
        lambda lib, f: f.jvp(lambda x: 3.0, (lib.ones(2),), (lib.ones(2),)),
        "expected f(*primals) to return only tensors, got unsupported type <class 'float'>",
    ),
}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_class_of_the_error_and_the_words_are_those_of_pytorch(name):
    call, words = WORDS[name]
    with pytest.raises(Exception) as theirs:  # noqa: PT011 (whichever class PyTorch raises)
        call(torch, torch.func)
    assert words in str(theirs.value)
    with pytest.raises(type(theirs.value)) as ours:
        call(rg, rg.func)
    assert words in str(ours.value)
