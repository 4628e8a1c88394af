"""Train a small transformer on digits through a pipeline of four stages: on threads, processes or a cluster.

    pip install "retrograd[demo]"
    python examples/pipeline/train.py
    retrograd run -n 4 --transport mpi examples/pipeline/train.py
    retrograd run -n 4 --transport ray examples/pipeline/train.py --checkpoints runs/digits
    retrograd plan examples/pipeline/train.py:example -n 4 --micro-batches 8

`retrograd run` decides where the script runs; without it, the stages run on threads. The losses are the same in every
case. docs/tutorial_cluster.md explains the script.
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

# ------------------------------------------------------------------------------------------------ model and data


class Reader(nn.Module):
    """Classify an image of 8 x 8 pixels, read as eight tokens, one per row."""

    def __init__(self, blocks: int = STAGES) -> None:
        super().__init__()
        self.rows = nn.Linear(8, WIDTH)
        self.places = nn.Parameter(0.1 * rg.randn(8, WIDTH))
        self.blocks = nn.Sequential(
            *[nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.1, batch_first=True) for _ in range(blocks)]
        )
        self.digit = nn.Linear(8 * WIDTH, 10)

    def forward(self, scans: rg.Tensor) -> rg.Tensor:
        """Return logits of shape (n, 10) for images of shape (n, 8, 8)."""
        return self.digit(self.blocks(self.rows(scans) + self.places).flatten(1))


def digits() -> tuple[rg.Tensor, rg.Tensor]:
    """Return the 1,797 images of scikit-learn's digits, and their labels."""
    scans, shown = load_digits(return_X_y=True)
    return rg.from_numpy(scans).to(rg.float32).reshape(-1, 8, 8) / 8 - 1, rg.from_numpy(shown).to(rg.int64)


def batch(scans: rg.Tensor, shown: rg.Tensor, step: int) -> tuple[rg.Tensor, rg.Tensor]:
    """Return the batch of a step; it depends only on the step, so all ranks and resumed runs use the same one."""
    chosen = rg.randint(len(scans), (BATCH,), generator=rg.Generator().manual_seed(step))
    return scans[chosen], shown[chosen]


# -------------------------------------------------------------------------------------------------- the training


def train(steps: int, schedule: str = "1f1b", checkpoints: Path | None = None) -> Pipeline:
    """Train up to step `steps`, from the last checkpoint if there is one, and print the losses."""
    rg.manual_seed(0)
    model, (scans, shown) = Reader(), digits()
    pipeline = Pipeline(model, STAGES, schedule=schedule, micro_batches=MICRO_BATCHES, loss_fn=cross_entropy)
    optimizer = AdamW(model.parameters(), lr=1e-3)
    saved = Checkpoints(checkpoints) if checkpoints else None
    restored = saved.restore(pipeline, optimizer) if saved else None
    if restored and pipeline.rank == 0:
        print(f"resuming after step {restored.step}")
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


def accuracy(pipeline: Pipeline) -> float:
    """Return the accuracy on the first 360 images, which are not trained on; all ranks must call it."""
    scans, shown = digits()
    pipeline.model.eval()
    return (pipeline.predict(scans[:360]).argmax(1) == shown[:360]).to(rg.float64).mean().item()


def example() -> tuple:
    """Return what `retrograd plan` measures: a model, the arguments of a whole batch, the target and the loss."""
    x, y = batch(*digits(), 0)
    return Reader(), (x,), y, cross_entropy


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--schedule", default="1f1b", help="a name, or a CSV file of actions")
    parser.add_argument("--checkpoints", type=Path, help="save every step in this folder, and resume from it")
    parser.add_argument("--timeline", type=Path, help="write the timeline of the last step as HTML")
    options = parser.parse_args()
    pipeline = train(options.steps, options.schedule, options.checkpoints)
    timeline, read = pipeline.timeline, accuracy(pipeline)
    if pipeline.rank == 0:
        print(f"test accuracy {read:.1%}")
        if options.timeline and timeline:
            write_html(options.timeline, {"measured": timeline}, title=f"A step under {options.schedule}")


if __name__ == "__main__":
    main()
