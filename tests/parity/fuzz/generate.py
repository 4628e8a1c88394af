"""Random programs as text: one line per instruction, over tensors `v[0]`, `v[1]`, ... of a library `L`."""

from collections.abc import Callable, Iterator

import numpy as np
import torch

UNARY = (
    "sin", "cos", "tanh", "exp", "abs", "neg", "sigmoid", "relu", "square", "floor", "ceil", "round", "sign", "sqrt",
    "rsqrt", "reciprocal", "log1p", "expm1", "erf", "atan", "trunc", "frac", "isnan", "isfinite", "logical_not", "sinh",
    "asinh", "log2", "positive", "digamma", "nan_to_num",
)  # fmt: skip
BINARY = (
    "add", "sub", "mul", "div", "maximum", "minimum", "atan2", "pow", "fmod", "remainder", "hypot", "logaddexp", "eq",
    "lt", "ge", "ne", "logical_and", "copysign", "floor_divide", "fmax", "xlogy", "nextafter",
)  # fmt: skip
REDUCTIONS = (
    "sum", "mean", "amax", "amin", "prod", "var", "std", "logsumexp", "any", "all", "argmax", "argmin", "nansum",
    "count_nonzero", "median",
)  # fmt: skip
ROWWISE = ("cumsum", "cumprod", "softmax", "log_softmax", "logcumsumexp")
DTYPES = ("float64", "float32", "int64", "bool", "float16", "int32", "uint8", "complex128")


class Generator:
    """Writes lines that suit the tensors that a program has so far, as PyTorch made them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.kinds: list[tuple[float, Callable[[dict], str]]] = [
            (2.0, self.unary),
            (2.5, self.binary),
            (0.8, self.scalar),
            (1.2, self.reduction),
            (0.8, self.rowwise),
            (3.0, self.view),
            (2.0, self.indexing),
            (2.5, self.write),
            (1.0, self.assignment),
            (0.8, self.convert),
            (0.6, self.join),
            (0.6, self.product),
            (0.7, self.places),
            (0.5, self.choice),
            (0.3, self.detach),
        ]

    def leaves(self) -> Iterator[str]:
        """Yield lines that make the tensors a program begins with."""
        for i in range(int(self.rng.integers(2, 5))):
            shape = tuple(int(s) for s in self.rng.integers(1, 4, self.rng.integers(0, 4)))
            values = np.round(self.rng.normal(size=shape) * 2, 3).tolist()
            dtype = self.pick(("float64", "float64", "float64", "float32", "float64", "int64"))
            if dtype == "int64":
                values = np.round(np.asarray(values) * 2).astype(int).tolist()
            grad = dtype != "int64" and self.rng.random() < 0.8
            made = f"L.tensor({values}, dtype=L.{dtype}"
            yield f"v[{i}] = {made}, requires_grad=True)" if grad else f"v[{i}] = {made})"

    def line(self, v: dict[int, torch.Tensor]) -> str:
        """Return a line that makes a new tensor of those in `v`, or writes to one of them."""
        weights = np.array([w for w, _ in self.kinds])
        kind = self.kinds[self.rng.choice(len(self.kinds), p=weights / weights.sum())][1]
        made = kind(v)
        return made if made.startswith(("v[", "with ")) and "=" in made.split("(")[0] else self._as_line(made, v)

    def _as_line(self, expression: str, v: dict) -> str:
        return f"v[{max(v) + 1}] = {expression}"

    # ------------------------------------------------------------------------------------------- expressions

    def pick(self, options: tuple) -> str:
        """Return one of the options."""
        return options[self.rng.integers(len(options))]

    def one(self, v: dict) -> int:
        """Return a tensor's number: rather one of the latest."""
        numbers = list(v)
        back = min(int(self.rng.geometric(0.25)), len(numbers))
        return numbers[-back]

    def partner(self, v: dict, i: int) -> int:
        """Return the number of a tensor that broadcasts with another, if there is one."""
        fitting = [j for j in v if _broadcasts(v[i].shape, v[j].shape)]
        return fitting[self.rng.integers(len(fitting))]

    def dim(self, tensor: torch.Tensor) -> int:
        """Return a dimension, counted from either end."""
        return int(self.rng.integers(-max(tensor.ndim, 1), max(tensor.ndim, 1)))

    def number(self) -> str:
        """Return a Python number as text."""
        return self.pick(("2", "-1", "0.5", "-1.5", "3", "0", "1", "True", "2.0"))

    def unary(self, v: dict) -> str:
        return f"L.{self.pick(UNARY)}(v[{self.one(v)}])"

    def binary(self, v: dict) -> str:
        i = self.one(v)
        return f"L.{self.pick(BINARY)}(v[{i}], v[{self.partner(v, i)}])"

    def scalar(self, v: dict) -> str:
        i, operator = self.one(v), self.pick(("+", "-", "*", "/", "**", "//", "%", "<", "=="))
        return f"v[{i}] {operator} {self.number()}" if self.rng.random() < 0.7 else f"{self.number()} {operator} v[{i}]"

    def reduction(self, v: dict) -> str:
        i, name = self.one(v), self.pick(REDUCTIONS)
        if name == "median" or (self.rng.random() < 0.3 and name not in ("amax", "logsumexp")):
            return f"v[{i}].{name}()"
        keepdim = "" if name in ("count_nonzero",) else f", keepdim={bool(self.rng.random() < 0.4)}"
        return f"v[{i}].{name}(dim={self.dim(v[i])}{keepdim})"

    def rowwise(self, v: dict) -> str:
        i = self.one(v)
        return f"v[{i}].{self.pick(ROWWISE)}(dim={self.dim(v[i])})"

    def view(self, v: dict) -> str:
        i = self.one(v)
        x, d = v[i], self.dim(v[i])
        size = x.shape[d] if x.ndim else 1
        start = int(self.rng.integers(0, size + 1))
        flat = [1, *(int(n) for n in np.unique([n for n in range(1, x.numel() + 1) if x.numel() % n == 0]))]
        rows = flat[self.rng.integers(len(flat))]
        return self.pick((
            f"v[{i}].transpose({d}, {self.dim(x)})",
            f"v[{i}].unsqueeze({d})",
            f"v[{i}].squeeze()",
            f"v[{i}].squeeze({d})",
            f"v[{i}].narrow({d}, {start}, {int(self.rng.integers(0, size - start + 1))})",
            f"v[{i}].reshape({rows}, -1)",
            f"v[{i}].view({rows}, -1)",
            f"v[{i}].flatten()",
            f"v[{i}].ravel()",
            f"v[{i}].expand({int(self.rng.integers(1, 3))}, {', '.join(['-1'] * x.ndim) or '1'})",
            f"v[{i}].select({d}, {int(self.rng.integers(-max(size, 1), max(size, 1)))})",
            f"v[{i}].flip({d})",
            f"v[{i}].diagonal()" if x.ndim > 1 else f"v[{i}].unfold(0, 1, 1)",
            f"v[{i}].unfold({d}, {int(self.rng.integers(0, size + 1))}, {int(self.rng.integers(1, 3))})",
            f"v[{i}].movedim({d}, {self.dim(x)})",
            f"v[{i}].roll({int(self.rng.integers(-2, 3))}, {d})",
            f"v[{i}].contiguous()",
            f"v[{i}].clone()",
            f"v[{i}].chunk(2, {d})[0]",
            f"v[{i}].unbind({d})[-1]",
            f"v[{i}].tril()" if x.ndim > 1 else f"v[{i}].repeat(2)",
            f"v[{i}].real" if x.is_complex() else f"v[{i}].T",
        ))  # fmt: skip

    def key(self, x: torch.Tensor) -> str:
        """Return the text of a key for a tensor."""
        parts = []
        for size in x.shape[: int(self.rng.integers(1, x.ndim + 1))] if x.ndim else ():
            size = max(int(size), 1)
            step, numbers = int(self.rng.integers(1, 3)), self.rng.integers(-size, size, 2).tolist()
            parts.append(self.pick((
                f"{int(self.rng.integers(-size, size))}", f"{int(self.rng.integers(-size, size))}:", f"::{step}", ":",
                f"{numbers}", f"L.tensor({numbers})", f":{int(self.rng.integers(0, size + 1))}",
            )))  # fmt: skip
        if self.rng.random() < 0.2:
            parts.insert(int(self.rng.integers(len(parts) + 1)), self.pick(("None", "...")))
        return ", ".join(parts) or "..."

    def indexing(self, v: dict) -> str:
        i = self.one(v)
        masks = [j for j in v if v[j].dtype == torch.bool and v[j].shape == v[i].shape[: v[j].ndim] and v[j].ndim]
        if masks and self.rng.random() < 0.4:
            return f"v[{i}][v[{masks[self.rng.integers(len(masks))]}]]"
        return f"v[{i}][{self.key(v[i])}]"

    def convert(self, v: dict) -> str:
        return f"v[{self.one(v)}].to(L.{self.pick(DTYPES)})"

    def join(self, v: dict) -> str:
        i = self.one(v)
        same = [j for j in v if v[j].shape == v[i].shape]
        j = same[self.rng.integers(len(same))]
        return f"L.{self.pick(('cat', 'stack'))}([v[{i}], v[{j}]], dim={self.dim(v[i])})"

    def product(self, v: dict) -> str:
        i = self.one(v)
        x = v[i]
        fitting = [j for j in v if x.ndim and v[j].ndim and x.shape[-1] == v[j].shape[-2 if v[j].ndim > 1 else -1]]
        if not fitting:
            return f"L.outer(v[{i}].flatten(), v[{i}].flatten())"
        return f"v[{i}] @ v[{fitting[self.rng.integers(len(fitting))]}]"

    def places(self, v: dict) -> str:
        i = self.one(v)
        d = self.dim(v[i])
        size = v[i].shape[d] if v[i].ndim else 1
        numbers = f"L.tensor({self.rng.integers(0, max(size, 1), 2).tolist()})"
        return self.pick((
            f"v[{i}].index_select({d}, {numbers})", f"v[{i}].index_fill({d}, {numbers}, {self.number()})",
            f"v[{i}].sort({d}, stable=True)[0]", f"v[{i}].cummax({d})[0]", f"v[{i}].topk(1, {d})[0]",
            f"L.take_along_dim(v[{i}], L.argsort(v[{i}], dim={d}, stable=True), {d})", f"v[{i}].max({d})[0]",
            f"L.diff(v[{i}], dim={d})", f"v[{i}].kthvalue(1, {d})[0]", f"v[{i}].var({d}, correction=0)",
        ))  # fmt: skip

    def choice(self, v: dict) -> str:
        i = self.one(v)
        j = self.partner(v, i)
        return f"L.where(v[{i}] > {self.number()}, v[{i}], v[{j}])"

    def detach(self, v: dict) -> str:
        return f"v[{self.one(v)}].detach()"

    # ------------------------------------------------------------------------------------------------- writes

    def write(self, v: dict) -> str:
        i = self.one(v)
        j = self.partner(v, i)
        d = self.dim(v[i])
        call = self.pick((
            f"add_(v[{j}])", f"mul_(v[{j}])", f"sub_({self.number()})", f"mul_({self.number()})", f"copy_(v[{j}])",
            f"div_({self.number()})", "zero_()", f"fill_({self.number()})", "clamp_(-1, 1)", "sigmoid_()", "relu_()",
            "neg_()", "abs_()", "exp_()", f"masked_fill_(v[{i}] > 0, {self.number()})", f"add_(v[{j}], alpha=2)",
            f"index_fill_({d}, L.tensor([0]), {self.number()})", f"pow_({self.number()})", f"lerp_(v[{j}], 0.5)",
            f"addcmul_(v[{j}], v[{j}], value=0.5)", "sin_()", "tanh_()",
        ))  # fmt: skip
        guard = "with L.no_grad(): " if self.rng.random() < 0.1 else ""
        return f"{guard}v[{max(v) + 1}] = v[{i}].{call}"

    def assignment(self, v: dict) -> str:
        i = self.one(v)
        key, j = self.key(v[i]), self.one(v)
        value = self.number() if self.rng.random() < 0.5 else f"v[{j}]"
        return f"v[{i}][{key}] = {value}"


def _broadcasts(a: torch.Size, b: torch.Size) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))
