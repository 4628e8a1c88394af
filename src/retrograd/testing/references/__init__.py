"""Reference implementations: oracles that are longer than a formula, or that several operators share.

An operator's class names its reference, `oracle = "retrograd.testing.references.pad.pad"`, and the law of
`testing/oracle_law.py` compares them. References take arrays, and the params by name. They compute by the definition,
one element, window or row at a time, or by functions of NumPy and SciPy that the operator does not use itself.
"""
