"""The chi-squared distribution."""

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The distribution of the sum of squares of `df` standard normal values.

    >>> from retrograd.distributions import Chi2
    >>> Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2

    def __repr__(self) -> str:
        return f"Chi2(df: {self.df})" if self.df.numel() == 1 else f"Chi2(df: shape {tuple(self.df.shape)})"
