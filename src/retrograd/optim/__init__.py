"""Optimizers and learning-rate schedules, with the names and state dicts of torch.optim."""

from retrograd.optim import lr_scheduler as lr_scheduler
from retrograd.optim import swa_utils as swa_utils
from retrograd.optim.adam import Adam as Adam
from retrograd.optim.adam import AdamW as AdamW
from retrograd.optim.adaptive import Adadelta as Adadelta
from retrograd.optim.adaptive import Adagrad as Adagrad
from retrograd.optim.adaptive import RMSprop as RMSprop
from retrograd.optim.asgd import ASGD as ASGD
from retrograd.optim.lbfgs import LBFGS as LBFGS
from retrograd.optim.matrices import Adafactor as Adafactor
from retrograd.optim.matrices import Muon as Muon
from retrograd.optim.moments import Adamax as Adamax
from retrograd.optim.moments import NAdam as NAdam
from retrograd.optim.moments import RAdam as RAdam
from retrograd.optim.optimizer import Optimizer as Optimizer
from retrograd.optim.sgd import SGD as SGD
from retrograd.optim.signs import Lion as Lion
from retrograd.optim.signs import Rprop as Rprop
