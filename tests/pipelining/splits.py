"""Where tests split models, and how they compare the results with the unsplit model's."""


def cut_after(count):
    """Return a policy: the first `count` operators, and the others."""

    def policy(captured):
        nodes = captured.graph.find_nodes(op="call_function")
        return {node: int(place >= count) for place, node in enumerate(nodes)}

    return policy


def assert_close(a, b):
    assert (a is None) == (b is None)
    if a is not None:
        assert a.shape == b.shape
        assert (a - b).abs().max().item() <= 1e-6 * max(1.0, b.abs().max().item())
