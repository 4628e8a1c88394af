"""lifelines: survival curves and regressions fitted by maximum likelihood, with their standard errors."""

import lifelines
import numpy as np
from lifelines.datasets import load_rossi, load_waltons

UNIVARIATE = [
    lifelines.ExponentialFitter(),
    lifelines.WeibullFitter(),
    lifelines.LogNormalFitter(),
    lifelines.LogLogisticFitter(),
    lifelines.GeneralizedGammaFitter(),
    lifelines.PiecewiseExponentialFitter([20, 40]),
    lifelines.SplineFitter([6.0, 20.0, 60.0]),
    lifelines.MixtureCureFitter(lifelines.WeibullFitter()),
]
REGRESSIONS = {
    "Weibull": lifelines.WeibullAFTFitter(),
    "log-normal": lifelines.LogNormalAFTFitter(penalizer=0.01),
    "log-logistic": lifelines.LogLogisticAFTFitter(),
    "piecewise": lifelines.PiecewiseExponentialRegressionFitter([25.0], penalizer=0.1),
    "Cox": lifelines.CoxPHFitter(),
    "Cox, sparse": lifelines.CoxPHFitter(penalizer=0.1, l1_ratio=0.5),
    "Cox, spline": lifelines.CoxPHFitter(baseline_estimation_method="spline", n_baseline_knots=3),
    "Cox, piecewise": lifelines.CoxPHFitter(baseline_estimation_method="piecewise", breakpoints=[20, 40]),
}


def answers():
    rats, convicts, found = load_waltons(), load_rossi(), {}
    for fitter in UNIVARIATE:
        name = type(fitter).__name__
        fitter.fit(rats["T"], rats["E"])
        found[f"{name} parameters"] = fitter.summary.to_numpy()
        found[f"{name} survival"] = fitter.survival_function_.to_numpy()
        found[f"{name} variance"] = fitter.variance_matrix_.to_numpy()
        found[f"{name} hazard"] = fitter.confidence_interval_hazard_.to_numpy()
    for fitter in UNIVARIATE:  # derivatives at times that are integers
        name = type(fitter).__name__
        fitter.fit(rats["T"].astype(int), rats["E"], timeline=np.arange(1, 60))
        found[f"{name} hazard at whole days"] = fitter.hazard_.to_numpy()
        found[f"{name} density at whole days"] = fitter.density_.to_numpy()
    for name, fitter in REGRESSIONS.items():
        fitter.fit(convicts, "week", "arrest")
        found[f"{name} regression"] = fitter.summary.to_numpy().astype(float)
        found[f"{name} hazard"] = fitter.predict_cumulative_hazard(convicts[:3]).to_numpy()
    return found
