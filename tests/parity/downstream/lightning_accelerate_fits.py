"""Lightning and Accelerate: fits of small networks, with callbacks, loggers, checkpoints and schedules."""

import logging
import tempfile
from pathlib import Path

import lightning
import numpy as np
import torch
from accelerate import Accelerator
from lightning.pytorch.callbacks import Callback, EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from seeded import array, fill
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Regression(lightning.LightningModule):
    """A network with two losses, a schedule and a hyperparameter."""

    def __init__(self, width=8):
        super().__init__()
        self.save_hyperparameters()
        self.net = fill(nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1)))

    def training_step(self, batch, batch_idx):
        """Return the loss."""
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        """Log the loss of a batch."""
        x, y = batch
        self.log("validation", nn.functional.mse_loss(self.net(x), y))

    def configure_optimizers(self):
        """Return an optimizer and its schedule."""
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.05)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


class Record(Callback):
    """A list of losses."""

    def __init__(self):
        self.losses = []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        """Append the loss of a batch."""
        self.losses.append(outputs["loss"].item())


def answers():
    """Return losses, parameters and logs."""
    found = {}
    x = array(24, 3)
    data = TensorDataset(x, x.sum(1, keepdim=True).sin())
    loader = DataLoader(data, batch_size=8)
    with tempfile.TemporaryDirectory() as folder:
        record = Record()
        trainer = lightning.Trainer(
            max_epochs=3,
            accelerator="cpu",
            default_root_dir=folder,
            logger=CSVLogger(folder),
            callbacks=[
                record,
                EarlyStopping("validation", patience=2),
                LearningRateMonitor(),
                ModelCheckpoint(folder, filename="best", monitor="validation", save_last=True),
            ],
            gradient_clip_val=0.5,
            accumulate_grad_batches=2,
            log_every_n_steps=1,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        model = Regression()
        trainer.fit(model, loader, loader)
        found["lightning losses"] = np.array(record.losses)
        found.update({f"lightning {key}": value.numpy() for key, value in model.state_dict().items()})
        found["validated"] = np.array(trainer.validate(model, loader, verbose=False)[0]["validation"])
        again = Regression.load_from_checkpoint(Path(folder, "best.ckpt"), weights_only=True)
        found["loaded"] = again.net(x).detach().numpy()
        rows = Path(trainer.logger.log_dir, "metrics.csv").read_text().splitlines()
        found["rows"] = np.array(len(rows))
        further = lightning.Trainer(
            max_epochs=4,
            accelerator="cpu",
            logger=False,
            default_root_dir=folder,
            enable_progress_bar=False,
            enable_checkpointing=False,
            enable_model_summary=False,
        )
        further.fit(Regression(), loader, ckpt_path=Path(folder, "last.ckpt"), weights_only=True)
        found.update({f"resumed {key}": value.numpy() for key, value in further.model.state_dict().items()})

        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        net = fill(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
        net, optimizer, batches, schedule = accelerator.prepare(net, optimizer, loader, schedule)
        losses = []
        for _ in range(2):
            for inputs, targets in batches:
                with accelerator.accumulate(net):
                    loss = nn.functional.mse_loss(net(inputs), targets)
                    accelerator.backward(loss)
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(net.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
                losses.append(accelerator.gather(loss.detach()).item())
        found["accelerate losses"] = np.array(losses)
        accelerator.save_state(folder)
        before = {key: value.clone() for key, value in net.state_dict().items()}
        with torch.no_grad():
            for p in net.parameters():
                p.zero_()
        accelerator.load_state(folder)
        found.update({f"accelerate {key}": value.numpy() for key, value in net.state_dict().items()})
        found["restored"] = np.array([torch.equal(before[key], value) for key, value in net.state_dict().items()])
    return found
