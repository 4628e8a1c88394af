"""`retrograd demo`: a small transformer on scanned digits, trained through a pipeline."""

from retrograd.cli.demo.model import MOST_STAGES
from retrograd.cli.demo.run import run
from retrograd.cli.demo.training import BATCH, EPOCHS, Settings

__all__ = ["BATCH", "EPOCHS", "MOST_STAGES", "Settings", "run"]
