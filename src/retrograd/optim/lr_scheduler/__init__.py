"""Learning rate schedules: call `step()` of the schedule after the steps of the optimizer.

Every schedule is a formula of its number of steps and the optimizer's initial learning rates.
"""

from retrograd.optim.lr_scheduler.base import LRScheduler as LRScheduler
from retrograd.optim.lr_scheduler.combined import ChainedScheduler as ChainedScheduler
from retrograd.optim.lr_scheduler.combined import SequentialLR as SequentialLR
from retrograd.optim.lr_scheduler.cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from retrograd.optim.lr_scheduler.cycles import CyclicLR as CyclicLR
from retrograd.optim.lr_scheduler.factors import ConstantLR as ConstantLR
from retrograd.optim.lr_scheduler.factors import CosineAnnealingLR as CosineAnnealingLR
from retrograd.optim.lr_scheduler.factors import ExponentialLR as ExponentialLR
from retrograd.optim.lr_scheduler.factors import FactorLR as FactorLR
from retrograd.optim.lr_scheduler.factors import LambdaLR as LambdaLR
from retrograd.optim.lr_scheduler.factors import LinearLR as LinearLR
from retrograd.optim.lr_scheduler.factors import MultiplicativeLR as MultiplicativeLR
from retrograd.optim.lr_scheduler.factors import MultiStepLR as MultiStepLR
from retrograd.optim.lr_scheduler.factors import PolynomialLR as PolynomialLR
from retrograd.optim.lr_scheduler.factors import StepLR as StepLR
from retrograd.optim.lr_scheduler.one_cycle import OneCycleLR as OneCycleLR
from retrograd.optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau

_LRScheduler = LRScheduler  # its older name, which schedules of users still inherit from
