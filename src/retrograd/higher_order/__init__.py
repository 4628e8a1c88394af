"""Control flow as operators: branches, loops and scans over functions of tensors."""

from retrograd.higher_order.branches import cond
from retrograd.higher_order.loops import while_loop
from retrograd.higher_order.scans import associative_scan, map, scan

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
