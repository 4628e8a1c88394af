"""Check derivatives against finite differences."""

from retrograd.autograd.gradcheck.checks import gradcheck, gradgradcheck
from retrograd.autograd.gradcheck.differences import GradcheckError

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
