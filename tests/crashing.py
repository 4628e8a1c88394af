"""A test that crashes its process; test_crash_report.py runs it, nothing else does."""

import ctypes


def test_reading_from_address_zero():
    ctypes.string_at(0)
