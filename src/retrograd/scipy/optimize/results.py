"""Runs of SciPy's solvers: their results, with the solution as a tensor."""

from retrograd.scipy._mirror import scipy_member


class Runs:
    """The results of SciPy's runs for one call: one, or one for each example under `vmap`."""

    def __init__(self):
        self.results = []

    def add(self, result):
        """Keep the result of a run."""
        self.results.append(result)

    def result(self, **tensors):
        """Return the last result with tensors in place of some fields; `success` is that of all runs."""
        fields = dict(self.results[-1]) if self.results else {}
        if "success" in fields:
            fields["success"] = all(r["success"] for r in self.results)
        return scipy_member("scipy.optimize").OptimizeResult(fields | tensors)
