"""Steps with sparse gradients, which read and write only the elements of parameters and states that have entries."""

from dataclasses import InitVar
from typing import Any

from retrograd.core import Tensor
from retrograd.nn.constructor_fields import field
from retrograd.ops.layout import has_sparse_layout
from retrograd.optim.declared_settings import DeclaredOptimizer, check_betas, check_positive, with_settings
from retrograd.optim.optimizer import Group, State, count_step
from retrograd.optim.state_entries import count, declare_entries


def entries_of(grad: Any) -> tuple[tuple[Tensor, ...], Any]:
    """Return the index of the elements with entries, each once, and the entries: x[index] has their shape."""
    grad = grad.to_sparse_coo().coalesce()
    return tuple(grad.indices().unbind(0)), grad.values()


@with_settings
class SparseAdam(DeclaredOptimizer):
    """Adam for sparse gradients: only elements with an entry, and their running means, are changed in a step.

    For an element with the gradient g: m ← beta1 · m + (1 - beta1) · g, v ← beta2 · v + (1 - beta2) · g²,
    p ← p - lr · sqrt(1 - beta2^t) / (1 - beta1^t) · m / (sqrt(v) + eps), with t the number of steps of the parameter.
    That is no Adam with zeros elsewhere: running means of other elements stay. A step takes memory and time for the
    entries only. The parameters are dense; RuntimeError for a dense gradient.

    >>> import retrograd as rg
    >>> table = rg.nn.Embedding.from_pretrained(rg.ones(3, 2), freeze=False, sparse=True)
    >>> optimizer = rg.optim.SparseAdam(table.parameters(), lr=0.5)
    >>> table(rg.tensor([2])).sum().backward()
    >>> optimizer.step()
    >>> table.weight.data
    tensor([[1.0000, 1.0000],
            [1.0000, 1.0000],
            [0.5000, 0.5000]])
    """

    entries = declare_entries("exp_avg", "exp_avg_sq", step=count)
    takes = ("sparse",)

    lr: InitVar[float] = field(default=1e-3, check=check_positive)
    betas: InitVar[tuple[float, float]] = field(default=(0.9, 0.999), check=check_betas)
    eps: InitVar[float] = field(default=1e-8, check=check_positive)
    maximize: InitVar[bool] = False

    def check(self, group: Group) -> None:
        """Check the settings, and that the parameters are dense and real."""
        super().check(group)
        for word, is_bad, needs in (
            ("Sparse", has_sparse_layout, "requires dense parameter tensors"),
            ("Complex", lambda p: p.dtype.kind == "c", "does not support complex parameters"),
        ):
            at = [[len(self.param_groups), number] for number, p in enumerate(group["params"]) if is_bad(p)]
            if at:
                raise ValueError(f"{word} params at indices {at}: SparseAdam {needs}")

    def update_sparse(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        count_step(param, state, "exp_avg", "exp_avg_sq")
        (beta1, beta2), step = group["betas"], state["step"]
        at, g = entries_of(-grad if group["maximize"] else grad)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean[at] = m = mean[at] * beta1 + g * (1 - beta1)
        square[at] = v = square[at] * beta2 + g * g * (1 - beta2)
        rate = group["lr"] * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        param[at] = param[at] - m / (v.sqrt() + group["eps"]) * rate
