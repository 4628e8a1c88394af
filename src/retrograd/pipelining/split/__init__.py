"""Split a model into stages: mark the boundaries, capture one run, cut the graph, find the loss."""
