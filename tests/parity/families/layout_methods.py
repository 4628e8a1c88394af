"""Known differences in memory that results share with inputs, and in writes to it."""

_FOLLOWS = "of complex numbers PyTorch shows the memory; ours are copies that follow it, and refuse writes"
_UNTRACKED = "PyTorch does not know that the results are views: its gradients are those of the memory before the write"

ALIASES = {
    ("adjoint", "copies"): _FOLLOWS,
    (
        "masked.prod",
        "copies",
    ): "PyTorch multiplies along one dimension at a time, and returns an input of none",
}

WRITES = {
    ("adjoint", "refuses"): _FOLLOWS,
    ("kron", "refuses"): "PyTorch does not notice the write, and multiplies by what was written",
    (
        "matmul",
        "refuses",
    ): "PyTorch multiplies copies of stacks that broadcast, and does not save what is written to",
    ("unfold_dim", "refuses"): "windows overlap: a write would go to one element several times",
    **{
        (f"logical_{what}_", "differs"): "PyTorch passes the gradient on as if nothing had been written"
        for what in ("and", "not", "or", "xor")
    },
    ("unsafe_chunk", "differs"): _UNTRACKED,
    ("unsafe_split", "differs"): _UNTRACKED,
    ("unsafe_split_with_sizes", "differs"): _UNTRACKED,
}
