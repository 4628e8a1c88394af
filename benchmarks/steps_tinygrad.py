"""For steps.py: the cases that are a few lines in tinygrad, compiled by its TinyJit."""

from typing import Any

from steps_data import RATE, STEPS, case_data
from steps_torch import STEPS_COMPARED

from retrograd.bench import Case


def forward(kind: str, params: list, x: Any) -> Any:
    """Return the logits of a network."""
    if kind == "images":
        for i in (0, 2):
            x = x.conv2d(params[i], params[i + 1], padding=1).relu().max_pool2d(2)
        return x.flatten(1).linear(params[4].T, params[5])
    for i in range(0, len(params) - 2, 2):
        x = x.linear(params[i].T, params[i + 1]).relu()
    return x.linear(params[-2].T, params[-1])


def case(row: str) -> Case | None:
    """Return a row's case; None if there is none."""
    from tinygrad import Context, Tensor, TinyJit
    from tinygrad.nn.optim import Adam

    step = STEPS[row]
    if step.kind not in ("perceptron", "images"):
        return None
    weights, inputs = case_data(row)
    params, (x, y) = [Tensor(w).is_param_() for w in weights], [Tensor(a).realize() for a in inputs]
    optimizer = Adam(params, lr=RATE)

    def train() -> Any:
        with Context(TRAINING=1):
            optimizer.zero_grad()
            loss = forward(step.kind, params, x).sparse_categorical_crossentropy(y).backward()
            return loss.realize(*optimizer.schedule_step())

    compiled = TinyJit(train)

    def call() -> float:
        return compiled().item()  # waits

    def check() -> list:
        loss = forward(step.kind, params, x).sparse_categorical_crossentropy(y)
        grads = [g.numpy() for g in loss.gradient(*params)]
        return [loss.item(), *grads, [call() for _ in range(STEPS_COMPARED + 1)][-1]]

    return Case(call, check)
