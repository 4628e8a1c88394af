"""Bits and integers: shifts, bitwise logic, divisors."""
