"""Optimizers and learning-rate schedules, with the names and state dicts of torch.optim."""

from retrograd.foundation import lazy_imports as _lazy
from retrograd.optim import lr_scheduler as lr_scheduler
from retrograd.optim import swa_utils as swa_utils
from retrograd.optim.adam import Adam as Adam
from retrograd.optim.adam import AdamW as AdamW
from retrograd.optim.adam_variants import Adamax as Adamax
from retrograd.optim.adam_variants import NAdam as NAdam
from retrograd.optim.adam_variants import RAdam as RAdam
from retrograd.optim.adaptive_gradient import Adadelta as Adadelta
from retrograd.optim.adaptive_gradient import Adagrad as Adagrad
from retrograd.optim.adaptive_gradient import RMSprop as RMSprop
from retrograd.optim.asgd import ASGD as ASGD
from retrograd.optim.lbfgs import LBFGS as LBFGS
from retrograd.optim.matrix_optimizers import Adafactor as Adafactor
from retrograd.optim.matrix_optimizers import Muon as Muon
from retrograd.optim.optimizer import Optimizer as Optimizer
from retrograd.optim.sgd import SGD as SGD
from retrograd.optim.sign_descent import Lion as Lion
from retrograd.optim.sign_descent import Rprop as Rprop
from retrograd.optim.sparse_gradients import SparseAdam as SparseAdam
from retrograd.optim.swap import swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state

__getattr__, __dir__ = _lazy.lazy_names(__name__, {})
