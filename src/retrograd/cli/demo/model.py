"""The model: a transformer that reads a scan row by row."""

import retrograd as rg
from retrograd import Tensor, nn
from retrograd.pipelining import SplitPoint

ROWS = COLUMNS = 8
DIGITS = 10
WIDTH, HEADS, HIDDEN, BLOCKS = 96, 4, 384, 4
# A model can be cut before a block, and before the second half of a block.
CUTS = [f"blocks.{i // 2}" + (".norm2" if i % 2 else "") for i in range(1, 2 * BLOCKS)]
MOST_STAGES = len(CUTS) + 1


class DigitReader(nn.Module):
    """Scans of shape (n, 8, 8) to scores of shape (n, 10): a token per row, four encoder blocks, one layer.

    >>> DigitReader()(rg.zeros(2, 8, 8)).shape
    (2, 10)
    """

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(COLUMNS, WIDTH)
        self.positions = nn.Parameter(rg.randn(ROWS, WIDTH) * 0.02)
        self.blocks = nn.ModuleList([_block() for _ in range(BLOCKS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(ROWS * WIDTH, DIGITS)

    def forward(self, scans: Tensor) -> Tensor:
        """Return scores of the ten digits, before softmax."""
        x = self.embed(scans) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).flatten(1))


def _block() -> nn.Module:
    # No dropout: the order of random draws would depend on thread timing.
    return nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, dropout=0.0, activation="relu", batch_first=True, norm_first=True
    )


def split_spec(stages: int) -> dict[str, SplitPoint]:
    """Return where to cut the model into 1 to MOST_STAGES stages of about equal size.

    >>> list(split_spec(4))
    ['blocks.1', 'blocks.2', 'blocks.3']
    """
    halves = len(CUTS) + 1
    return {CUTS[round(i * halves / stages) - 1]: SplitPoint.BEGINNING for i in range(1, stages)}


def describe_parameters(parameters: list[str]) -> str:
    """Summarize the content of a stage from the names of its parameters.

    >>> describe_parameters(["embed.weight", "blocks.0.norm1.weight", "blocks.0.norm2.bias", "blocks.1.self_attn.bias"])
    'embed, block 0, attention 1'
    """
    halves: dict[str, dict[str, None]] = {}
    for name in parameters:
        top, *rest = name.split(".")
        block = f"block {rest[0]}" if top == "blocks" else top
        half = ("attention" if rest[1] in ("norm1", "self_attn") else "feed-forward") if top == "blocks" else ""
        halves.setdefault(block, {})[half] = None
    return ", ".join(_label(block, list(found)) for block, found in halves.items())


def _label(block: str, halves: list[str]) -> str:
    return f"{halves[0]} {block.removeprefix('block ')}" if len(halves) == 1 and halves[0] else block
