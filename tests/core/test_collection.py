"""A garbage collection at any moment of an iteration over weak references does no harm."""

import gc

import retrograd as rg
from retrograd.core.hooks import some_leaf_is_watched
from retrograd.core.tensor import preserve_snapshots


def collect_after(allocations, run, make):
    """Run a function on what `make` returns, with a collection of garbage after that many allocations."""
    gc.collect()
    gc.disable()
    thresholds = gc.get_threshold()
    try:
        made = make()
        gc.set_threshold(gc.get_count()[0] + allocations, 1000, 1000)
        gc.enable()
        run(made)
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()


def unreachable_leaves():
    """Make leaves with hooks that only a collection frees."""
    for _ in range(20):
        leaf = rg.tensor(1.0, requires_grad=True)
        leaf.register_hook(lambda g: None)
        loop = [leaf]
        loop.append(loop)


def tensor_with_unreachable_snapshots():
    """Return a tensor of which graphs that only a collection frees hold snapshots."""
    x = rg.ones(3, requires_grad=True).clone()
    for _ in range(20):
        loop = [rg.nn.functional.tanhshrink(x)]
        loop.append(loop)
    assert len(x.version.snapshots) == 20
    return x


def test_leaves_with_hooks_may_be_freed_while_they_are_counted():
    for allocations in range(30):
        collect_after(allocations, lambda _: some_leaf_is_watched(), unreachable_leaves)


def test_snapshots_may_be_freed_while_they_are_preserved():
    for allocations in range(30):
        collect_after(allocations, preserve_snapshots, tensor_with_unreachable_snapshots)
