"""Optimizers and learning-rate schedules, with the names and state dicts of torch.optim."""

from retrograd.optim import lr_scheduler as lr_scheduler
from retrograd.optim.adam import Adam as Adam
from retrograd.optim.adam import AdamW as AdamW
from retrograd.optim.optimizer import Optimizer as Optimizer
from retrograd.optim.sgd import SGD as SGD
