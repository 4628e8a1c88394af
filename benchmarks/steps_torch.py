"""For steps.py: the cases in retrograd and PyTorch, by the same code."""

from collections.abc import Callable
from typing import Any

from steps_data import (
    BATCH,
    CHAIN,
    DECAY,
    EMBEDDING,
    GPT_HEADS,
    GPT_LAYERS,
    GPT_LENGTH,
    GPT_WIDTH,
    HEADS,
    LENGTH,
    RAGGED,
    RATE,
    STEPS,
    VOCABULARY,
    WIDTH,
    case_data,
)  # fmt: skip

from retrograd.bench import Case, converter

STEPS_COMPARED = 3  # after this many steps the loss is compared too


Compiler = Callable[[Callable], Callable]


def as_it_is(step: Callable) -> Callable:
    """Return a step that is not compiled."""
    return step


def case(m: Any, row: str, compiler: Compiler = as_it_is) -> Case:
    """Return a row's case over a library with PyTorch's names; `compiler` may replace its step by a compiled one."""
    weights, inputs = case_data(row)
    step = STEPS[row]
    given = [m.from_numpy(x) for x in inputs]
    if step.optimizer:
        model = load_weights(m, MODELS[step.kind](m, weights), weights)
        return training_step(m, model, step.optimizer, compiler, *given)
    made = CALLS[step.kind](m, weights, *given)
    return made if compiler is as_it_is else made._replace(call=compiler(made.call))


def load_weights(m: Any, model: Any, weights: list) -> Any:
    """Return the model with the weights that every subject uses."""
    with m.no_grad():
        for parameter, weight in zip(model.parameters(), weights, strict=True):
            parameter.copy_(m.from_numpy(weight))
    return model


# -------------------------------------------------------------------------------------------- whole steps


def training_step(m: Any, model: Any, optimizer: str, compiler: Compiler, x: Any, y: Any) -> Case:
    """Return a step of training a classifier: gradients of the mean loss, and an update."""
    options = {"weight_decay": DECAY} if optimizer == "AdamW" else {}
    updates = getattr(m.optim, optimizer)(model.parameters(), lr=RATE, **options)
    loss_of = m.nn.functional.cross_entropy

    def step() -> Any:
        updates.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        updates.step()
        return loss.detach()

    step = compiler(step)

    def check() -> list:
        as_array = converter(m)
        first = float(step())
        gradients = [as_array(p.grad).copy() for p in model.parameters()]
        return [first, *gradients, [float(step()) for _ in range(STEPS_COMPARED)][-1]]

    return Case(step, check)


def perceptron(m: Any, weights: list) -> Any:
    """Return linear layers with ReLU between them."""
    layers: list = []
    for weight in weights[::2]:
        layers += [m.nn.Linear(*weight.shape[::-1]), m.nn.ReLU()]
    return m.nn.Sequential(*layers[:-1])


def images(m: Any, weights: list) -> Any:
    """Return two convolutions and a linear layer."""
    nn = m.nn
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(128, 10))


def gpt(m: Any, weights: list) -> Any:
    """Return a decoder with pre-normalization."""
    nn, functional = m.nn, m.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.qkv = nn.LayerNorm(GPT_WIDTH), nn.Linear(GPT_WIDTH, 3 * GPT_WIDTH)
            self.mixed, self.norm2 = nn.Linear(GPT_WIDTH, GPT_WIDTH), nn.LayerNorm(GPT_WIDTH)
            self.up, self.down = nn.Linear(GPT_WIDTH, 4 * GPT_WIDTH), nn.Linear(4 * GPT_WIDTH, GPT_WIDTH)

        def forward(self, x: Any) -> Any:
            parts = self.qkv(self.norm1(x)).unflatten(-1, (3, GPT_HEADS, -1)).permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
            x = x + self.mixed(seen.transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(VOCABULARY, GPT_WIDTH), nn.Embedding(GPT_LENGTH, GPT_WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(GPT_LAYERS)])
            self.norm, self.head = nn.LayerNorm(GPT_WIDTH), nn.Linear(GPT_WIDTH, VOCABULARY, bias=False)

        def forward(self, text: Any) -> Any:
            x = self.blocks(self.words(text) + self.places.weight)
            return self.head(self.norm(x)).flatten(0, 1)

    return Decoder()


MODELS: dict[str, Callable] = {"perceptron": perceptron, "images": images, "gpt": gpt}

# ---------------------------------------------------------------------------------- forward and backward


def with_gradients(m: Any, function: Callable, leaves: list, g: Any = None) -> Case:
    """Return a function of leaves, and the gradients of all of them."""

    def call() -> None:
        for leaf in leaves:
            leaf.grad = None
        function().backward(g)

    def check() -> list:
        call()
        return [converter(m)(leaf.grad).copy() for leaf in leaves]

    return Case(call, check)


def leaves_of(m: Any, arrays: list) -> list:
    """Return leaves that require grad."""
    return [m.from_numpy(a).requires_grad_(True) for a in arrays]


def chain(m: Any, weights: list, y: Any) -> Case:
    """Return a chain of products of four numbers."""
    (w,) = leaves_of(m, weights)

    def function() -> Any:
        x = w
        for _ in range(CHAIN):
            x = x * y
        return x.sum()

    made = with_gradients(m, function, [w])
    return made._replace(operations=CHAIN)


def layer(m: Any, weights: list) -> Any:
    """Return a transformer encoder layer without dropout; rounding near ReLU's kink would grow to differences."""
    made = m.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True)
    return load_weights(m, made, weights)


def encoder(m: Any, weights: list, x: Any, g: Any) -> Case:
    """Return one layer with the gradient of its input."""
    model = layer(m, weights)
    x.requires_grad_(True)
    return with_gradients(m, lambda: model(x), [x, *model.parameters()], g)


def ragged(m: Any, weights: list, x: Any, g: Any) -> Case:
    """Return the same for sequences of many lengths: nested in retrograd, in PyTorch padded and masked.

    The gradients of the weights are compared, to which padding adds nothing.
    """
    model = layer(m, weights)
    parts, pulls = ([t[i, :n] for i, n in enumerate(RAGGED)] for t in (x, g))
    if m.__name__ == "retrograd":
        x, g, mask = m.nested.nested_tensor(parts), m.nested.nested_tensor(pulls), None
    else:
        mask = m.tensor([[i >= n for i in range(LENGTH)] for n in RAGGED])
        g = g.masked_fill(mask.unsqueeze(-1), 0.0)
    assert len(RAGGED) == BATCH
    x.requires_grad_(True)
    made = with_gradients(m, lambda: model(x, src_key_padding_mask=mask), [*model.parameters(), x], g)

    def check() -> list:
        made.call()
        return [converter(m)(p.grad).copy() for p in model.parameters()]

    return made._replace(check=check)


def convolution(m: Any, weights: list, x: Any, g: Any) -> Case:
    """Return a convolution with gradients of images, weight and bias."""
    w, b = leaves_of(m, weights)
    x.requires_grad_(True)
    return with_gradients(m, lambda: m.nn.functional.conv2d(x, w, b, padding=1), [x, w, b], g)


def embedding(m: Any, weights: list, tokens: Any, g: Any) -> Case:
    """Return the backward pass alone."""
    (table,) = leaves_of(m, weights)
    assert tuple(table.shape) == EMBEDDING
    out = m.nn.functional.embedding(tokens, table)

    def call() -> Any:
        table.grad = None
        out.backward(g, retain_graph=True)

    def check() -> list:
        call()
        return [converter(m)(table.grad).copy()]

    return Case(call, check)


CALLS: dict[str, Callable] = {
    "chain": chain, "encoder": encoder, "ragged": ragged, "convolution": convolution, "embedding": embedding,
}  # fmt: skip
