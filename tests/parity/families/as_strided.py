"""PyTorch's calls and known differences of windows and strided views."""

CALLS = {"unfold_dim": lambda x, dimension, size, step: x.unfold(dimension, size, step)}

# Ours gives x no gradient where it was replaced, PyTorch gives it the gradient there, and nowhere else.
KNOWN = {
    ("as_strided_scatter", "gradient"): "PyTorch's gradient of x is that of what was replaced",
}
