"""Test modules of this folder define operators."""

from ..own_operators import own_operators, pytest_make_collect_report  # noqa: F401
