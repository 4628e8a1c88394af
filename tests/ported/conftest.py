"""Scripts import PyTorch, which the tests need not have: only the harness imports them."""

collect_ignore = ["scripts"]
