"""A small transformer that learns to read digits, split over four stages: on threads, processes or a cluster.

    pip install "retrograd[demo]"
    python examples/pipeline/train.py
    retrograd run -n 4 --transport mpi examples/pipeline/train.py
    retrograd run -n 4 --transport ray examples/pipeline/train.py --checkpoints runs/digits
    retrograd plan examples/pipeline/train.py:example -n 4 --micro-batches 8

Nothing in the script says where it runs: `retrograd run` does, and without it the stages are on threads. The losses are
the same everywhere. docs/tutorial_cluster.md goes through it.
"""

import argparse
from pathlib import Path

from sklearn.datasets import load_digits

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import cross_entropy
from retrograd.optim import AdamW
from retrograd.pipelining import Checkpoints, Pipeline, write_html

STAGES, MICRO_BATCHES, BATCH, WIDTH = 4, 8, 256, 64

# ------------------------------------------------------------------------------------------- the model, the data


class Reader(nn.Module):
    """Reads a digit of 8 x 8 pixels as eight tokens, one a row."""

    def __init__(self, blocks: int = STAGES) -> None:
        super().__init__()
        self.rows = nn.Linear(8, WIDTH)
        self.places = nn.Parameter(0.1 * rg.randn(8, WIDTH))
        self.blocks = nn.Sequential(
            *[nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.1, batch_first=True) for _ in range(blocks)]
        )
        self.digit = nn.Linear(8 * WIDTH, 10)

    def forward(self, scans: rg.Tensor) -> rg.Tensor:
        """Scans (n, 8, 8) to scores (n, 10)."""
        return self.digit(self.blocks(self.rows(scans) + self.places).flatten(1))


def digits() -> tuple[rg.Tensor, rg.Tensor]:
    """All 1,797 scans of scikit-learn, and what they show."""
    scans, shown = load_digits(return_X_y=True)
    return rg.from_numpy(scans).to(rg.float32).reshape(-1, 8, 8) / 8 - 1, rg.from_numpy(shown).to(rg.int64)


def batch(scans: rg.Tensor, shown: rg.Tensor, step: int) -> tuple[rg.Tensor, rg.Tensor]:
    """The batch of a step: a function of its number, so that all ranks, and a run that goes on, have the same."""
    chosen = rg.randint(len(scans), (BATCH,), generator=rg.Generator().manual_seed(step))
    return scans[chosen], shown[chosen]


# --------------------------------------------------------------------------------------------------- the training


def train(steps: int, schedule: str = "1f1b", checkpoints: Path | None = None) -> Pipeline:
    """Train for so many steps, those before a checkpoint included; tells the losses."""
    rg.manual_seed(0)
    model, (scans, shown) = Reader(), digits()
    pipeline = Pipeline(model, STAGES, schedule=schedule, micro_batches=MICRO_BATCHES, loss_fn=cross_entropy)
    optimizer = AdamW(model.parameters(), lr=1e-3)
    saved = Checkpoints(checkpoints) if checkpoints else None
    restored = saved.restore(pipeline, optimizer) if saved else None
    if restored and pipeline.rank == 0:
        print(f"goes on after step {restored.step}")
    for step in range(restored.step + 1 if restored else 0, steps):
        x, y = batch(scans[360:], shown[360:], step)
        loss = pipeline.step(x, target=y)
        optimizer.step()
        optimizer.zero_grad()
        if saved:
            saved.save(step, pipeline, optimizer)
        if pipeline.rank == 0 and (step % 20 == 0 or step == steps - 1):
            print(f"step {step}: loss {loss.item():.6f}", flush=True)
    return pipeline


def share_read(pipeline: Pipeline) -> float:
    """The share of the first 360 digits, which are not trained on, that are read correctly; all ranks call it."""
    scans, shown = digits()
    pipeline.model.eval()
    return (pipeline.predict(scans[:360]).argmax(1) == shown[:360]).to(rg.float64).mean().item()


def example() -> tuple:
    """What `retrograd plan` measures: a model, its arguments for a whole batch, the target and the loss."""
    x, y = batch(*digits(), 0)
    return Reader(), (x,), y, cross_entropy


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--schedule", default="1f1b", help="a name, or a file of actions (.csv)")
    parser.add_argument("--checkpoints", type=Path, help="save every step in this folder, and go on from there")
    parser.add_argument("--timeline", type=Path, help="write the last step's timeline as a page")
    options = parser.parse_args()
    pipeline = train(options.steps, options.schedule, options.checkpoints)
    timeline, read = pipeline.timeline, share_read(pipeline)
    if pipeline.rank == 0:
        print(f"{read:.1%} of the digits that it has not seen are read correctly")
        if options.timeline and timeline:
            write_html(options.timeline, {"measured": timeline}, title=f"A step of {options.schedule}")


if __name__ == "__main__":
    main()
