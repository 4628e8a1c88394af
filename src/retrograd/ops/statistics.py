"""Statistics: medians, quantiles, moments, histograms, what skips NaN."""
