"""Operators, by family of use.  Importing this package registers all of them."""

from retrograd import backend as backend
from retrograd.core import bind_arithmetic, registry
from retrograd.ops import activation as activation
from retrograd.ops import bessel as bessel
from retrograd.ops import bits as bits
from retrograd.ops import complex as complex
from retrograd.ops import conv as conv
from retrograd.ops import create as create
from retrograd.ops import decompose as decompose
from retrograd.ops import distances as distances
from retrograd.ops import distributions as distributions
from retrograd.ops import fft as fft
from retrograd.ops import floats as floats
from retrograd.ops import functions as functions
from retrograd.ops import gamma as gamma
from retrograd.ops import index as index
from retrograd.ops import join as join
from retrograd.ops import linalg as linalg
from retrograd.ops import losses as losses
from retrograd.ops import margins as margins
from retrograd.ops import masked as masked
from retrograd.ops import matrices as matrices
from retrograd.ops import methods as methods
from retrograd.ops import mutate as mutate
from retrograd.ops import nn as nn
from retrograd.ops import normalize as normalize
from retrograd.ops import norms as norms
from retrograd.ops import pad as pad
from retrograd.ops import pointwise as pointwise
from retrograd.ops import polynomials as polynomials
from retrograd.ops import pool as pool
from retrograd.ops import products as products
from retrograd.ops import random as random
from retrograd.ops import reduce as reduce
from retrograd.ops import resize as resize
from retrograd.ops import scan as scan
from retrograd.ops import scatter as scatter
from retrograd.ops import solve as solve
from retrograd.ops import sort as sort
from retrograd.ops import special as special
from retrograd.ops import statistics as statistics
from retrograd.ops import strides as strides
from retrograd.ops import view as view
from retrograd.ops import windows as windows

_ARITHMETIC = "add sub mul div matmul pow neg remainder floor_divide lt le gt ge eq ne"

bind_arithmetic({name: registry[name] for name in _ARITHMETIC.split()})


def public(home=""):
    """What has a name in `rg.<home>` ("": in `rg` itself), by that name: operators, and functions that are none."""
    named = {name: operator for operator in registry.values() for name in operator.public_names}
    parts = [(*name.rpartition("."), member) for name, member in {**named, **functions.functions}.items()]
    return {last: member for where, _, last, member in parts if where == home}


methods.add_operators(public())
mutate.add_in_place(public())
