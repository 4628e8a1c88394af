"""Facts about operators that only power series use, and that their derivative rules don't show."""

# The right-hand side a of each operator whose result y solves equations E(b, y) = a that are linear in y and in the
# other inputs b. The rule `jvp_b` names `out`, not `a`.
SOLVES = {
    "div": "a",
    "triangular": "B",
    "linear_recurrence": "b",
    "share": "total",
    "share_grad": "t",
    "solve_sylvester": "Q",
    "nested.segment_recurrence": "b",
}

# Fused operators as products and sums, whose series are simpler than those of their own rules.
FORMULAS = {
    "tanh_grad": lambda t, y: t * (1 - y * y),
    "sigmoid_grad": lambda t, y: t * (y - y * y),
}
