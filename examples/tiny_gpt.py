"""Train a small GPT on Python's manual, character by character, and generate text with a key-value cache.

    pip install "retrograd[viz]"
    python examples/tiny_gpt.py

The text is the topics of `help()`, which come with Python. Four transformer blocks predict the next character from up
to 128 characters. The quality is measured in bits per character on the last tenth of the text, which is held out, and
compared with counts of single characters, pairs and triples. Muon optimizes the matrices, and AdamW all other
parameters. During generation, a `KVCache` stores the keys and values of earlier characters, so only the new character
passes through the blocks.
"""

import math
import time
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F

TEXT = "\n".join(topics[name] for name in sorted(topics))
LETTERS = sorted(set(TEXT))
NUMBERS = {letter: number for number, letter in enumerate(LETTERS)}
CONTEXT = 128


class GPT(nn.Module):
    """A decoder-only transformer: A. Radford et al., Language Models are Unsupervised Multitask Learners, 2019."""

    def __init__(self, width: int, heads: int = 4, blocks: int = 4) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width)
        nn.init.normal_(self.letters.weight, std=0.5)  # with the default of 1, they dominate the positional encodings
        self.places = nn.SinusoidalPositions(width)
        block = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, blocks, nn.LayerNorm(width))
        self.scores = nn.Linear(width, len(LETTERS))

    def forward(self, letters: rg.Tensor, cache: nn.KVCache | None = None) -> rg.Tensor:
        """Return logits (texts, positions, letters) for letters (texts, positions), which follow those in the cache."""
        x = self.places(self.letters(letters), offset=0 if cache is None else len(cache))
        return self.scores(self.blocks(x, is_causal=True, cache=cache))


def numbers(text: str) -> rg.Tensor:
    return rg.tensor([NUMBERS[letter] for letter in text])


def bits(model: GPT, texts: rg.Tensor) -> rg.Tensor:
    """Return the mean of -log2 p of the letters of texts (n, positions + 1), given those before them."""
    return F.cross_entropy(model(texts[:, :-1]).flatten(0, 1), texts[:, 1:].flatten()) / math.log(2)


def ngram_bits(learned: np.ndarray, held: np.ndarray, before: int) -> float:
    """Return bits per letter of the held-out text under an n-gram model with `before` letters of context."""
    kinds = len(LETTERS)
    places = np.zeros(len(held) - before, int), np.zeros(len(learned) - before, int)
    for found, text in zip(places, (held, learned), strict=True):
        for i in range(before + 1):
            found += text[i : i + len(found)] * kinds ** (before - i)
    tables = np.bincount(places[1], minlength=kinds ** (before + 1)) + 0.01
    rows = tables.reshape(-1, kinds).sum(1)
    return -np.log2(tables[places[0]] / rows[places[0] // kinds]).mean()


# ------------------------------------------------------------------------------------------------------ training


def train(model: GPT, text: rg.Tensor, steps: int, batch: int = 8) -> list[float]:
    """Train the model; return the bits per letter before each step."""
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if all(p is not matrix for matrix in matrices)]
    optimizers = optim.Muon(matrices, lr=0.02, weight_decay=0.0), optim.AdamW(others, lr=3e-3)
    schedules = [
        optim.lr_scheduler.LambdaLR(o, lambda n: min(1, 10 * (n + 1) / steps, 1.6 * (steps - n) / steps))
        for o in optimizers
    ]
    losses = []
    for number in range(steps):
        start = rg.randint(len(text) - CONTEXT, (batch, 1))
        loss = bits(model, text[start + rg.arange(CONTEXT + 1)])
        model.zero_grad()
        loss.backward()
        for each in (*optimizers, *schedules):
            each.step()
        losses.append(loss.item())
        if number % 100 == 99:
            print(f"step {number + 1}: {sum(losses[-100:]) / 100:.2f} bits per letter")
    return losses


# ---------------------------------------------------------------------------------------------------- generation


@rg.no_grad()
def generate_text(model: GPT, prompt: str, length: int, cached: bool = True, warmth: float = 0.7) -> str:
    """Return the prompt and a continuation by the model; a full context is cut to its last half."""
    text, cache = numbers(prompt)[None], nn.KVCache()
    new = text
    for _ in range(length):
        if len(cache) + new.shape[1] > CONTEXT:
            new, cache = text[:, -CONTEXT // 2 :], nn.KVCache()
        scores = model(new, cache if cached else None)[:, -1]
        letter = rg.multinomial(F.softmax(scores / warmth, -1), 1)
        text = rg.cat([text, letter], 1)
        new = letter if cached else rg.cat([new, letter], 1)
    return "".join(LETTERS[i] for i in text[0].tolist())


def draw(path: Path, losses: list[float], held: float, counts: list[float]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(losses, color="C0", alpha=0.3, linewidth=0.8)
    some = min(25, len(losses))
    smooth = np.convolve(losses, np.ones(some) / some, "valid")
    axes.plot(np.arange(len(smooth)) + some // 2, smooth, color="C0", label="GPT, as it learns")
    axes.plot(len(losses), held, "o", color="C0", label="GPT, on held-out text")
    for count, name in zip(counts, ("letters alone", "pairs", "threes"), strict=True):
        axes.axhline(count, color="0.6", linewidth=0.8, linestyle="--")
        axes.annotate(f"counts of {name}", (len(losses), count), ha="right", va="bottom", fontsize=8, color="0.4")
    axes.set(ylim=(0, 6.5), xlabel="step", ylabel="bits per letter")
    axes.legend(frameon=False, loc="lower left")
    figure.savefig(path, dpi=120)


def main(
    steps: int = 800,
    width: int = 64,
    length: int = 400,
    manual: str = TEXT,
    picture: Path | None = Path("tiny_gpt.png"),
) -> tuple[float, list[float]]:
    rg.manual_seed(0)
    model, text = GPT(width), numbers(manual)
    learned, held = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    print(f"{sum(p.numel() for p in model.parameters())} weights, {len(learned)} letters")
    losses = train(model, learned, steps)
    with rg.no_grad():
        found = bits(model, held.unfold(0, CONTEXT + 1, CONTEXT)).item()
    counts = [ngram_bits(learned.numpy(), held.numpy(), before) for before in range(3)]
    print(f"held-out text: {found:.2f} bits per letter; counts: {', '.join(f'{c:.2f}' for c in counts)}")
    for cached in (False, True):
        rg.manual_seed(1)
        start = time.perf_counter()
        story = generate_text(model, "The statement ", length, cached)
        rate = length / (time.perf_counter() - start)
        print(f"{rate:.0f} letters per second {'with' if cached else 'without'} the cache")
    print(story)
    if picture is not None:
        draw(picture, losses, found, counts)
    return found, counts


if __name__ == "__main__":
    main()
