"""Operators, by family of use.  Importing this package registers all of them."""

from typing import Annotated, get_args, get_origin

from retrograd import backend as backend
from retrograd.core import bind_arithmetic, registry
from retrograd.core.definition import Operator
from retrograd.ops import activation as activation
from retrograd.ops import as_strided as as_strided
from retrograd.ops import as_tensor as as_tensor
from retrograd.ops import attention as attention
from retrograd.ops import bessel as bessel
from retrograd.ops import bitwise as bitwise
from retrograd.ops import complex as complex
from retrograd.ops import constants as constants
from retrograd.ops import conv as conv
from retrograd.ops import create as create
from retrograd.ops import cross_entropy as cross_entropy
from retrograd.ops import decompose as decompose
from retrograd.ops import distances as distances
from retrograd.ops import distributions as distributions
from retrograd.ops import dropout as dropout
from retrograd.ops import eigen as eigen
from retrograd.ops import embedding as embedding
from retrograd.ops import fft as fft
from retrograd.ops import floats as floats
from retrograd.ops import fractional_pool as fractional_pool
from retrograd.ops import functions as functions
from retrograd.ops import gamma as gamma
from retrograd.ops import gather as gather
from retrograd.ops import generator as generator
from retrograd.ops import grouped as grouped
from retrograd.ops import histograms as histograms
from retrograd.ops import householder as householder
from retrograd.ops import im2col as im2col
from retrograd.ops import index as index
from retrograd.ops import inplace as inplace
from retrograd.ops import inplace_views as inplace_views
from retrograd.ops import interpolate as interpolate
from retrograd.ops import join as join
from retrograd.ops import layout as layout
from retrograd.ops import layout_methods as layout_methods
from retrograd.ops import ldl as ldl
from retrograd.ops import legacy as legacy
from retrograd.ops import linalg as linalg
from retrograd.ops import linspace as linspace
from retrograd.ops import lobpcg as lobpcg
from retrograd.ops import losses as losses
from retrograd.ops import lowrank as lowrank
from retrograd.ops import lstsq as lstsq
from retrograd.ops import lu as lu
from retrograd.ops import masked as masked
from retrograd.ops import masked_reductions as masked_reductions
from retrograd.ops import matrices as matrices
from retrograd.ops import matrix_equations as matrix_equations
from retrograd.ops import matrix_functions as matrix_functions
from retrograd.ops import methods as methods
from retrograd.ops import multihead_attention as multihead_attention
from retrograd.ops import mutate as mutate
from retrograd.ops import native as native
from retrograd.ops import nn as nn
from retrograd.ops import norm as norm
from retrograd.ops import normalize as normalize
from retrograd.ops import orthogonal_polynomials as orthogonal_polynomials
from retrograd.ops import pad as pad
from retrograd.ops import pairwise_losses as pairwise_losses
from retrograd.ops import pointwise as pointwise
from retrograd.ops import pool_indices as pool_indices
from retrograd.ops import pooling as pooling
from retrograd.ops import precision_settings as precision_settings
from retrograd.ops import printing as printing
from retrograd.ops import products as products
from retrograd.ops import quantize as quantize
from retrograd.ops import random as random
from retrograd.ops import recurrent as recurrent
from retrograd.ops import reduce as reduce
from retrograd.ops import resize_memory as resize_memory
from retrograd.ops import scan as scan
from retrograd.ops import scatter as scatter
from retrograd.ops import signal_windows as signal_windows
from retrograd.ops import solve as solve
from retrograd.ops import sort as sort
from retrograd.ops import special as special
from retrograd.ops import split as split
from retrograd.ops import statistics as statistics
from retrograd.ops import stft as stft
from retrograd.ops import storage as storage
from retrograd.ops import svd as svd
from retrograd.ops import symbolic as symbolic
from retrograd.ops import to_dtype as to_dtype
from retrograd.ops import view as view
from retrograd.ops import view_copies as view_copies
from retrograd.ops.user_namespaces import Namespace

_ARITHMETIC = "add sub mul div matmul pow neg remainder floor_divide lt le gt ge eq ne"

bind_arithmetic({name: registry[name] for name in _ARITHMETIC.split()})


def public(home=""):
    """Return the operators and functions in the namespace `rg.<home>` ("": `rg` itself), by name."""
    named = {name: operator for operator in registry.values() for name in operator.public_names}
    parts = [(*name.rpartition("."), member) for name, member in {**named, **functions.functions}.items()]
    return {last: member for where, _, last, member in parts if where == home}


def result_of(operator):
    """Return the annotation of a composite operator's result; None without one."""
    return getattr(getattr(operator.definition, "compose", None), "__annotations__", {}).get("return")


def named_tuple_of(operator):
    """Return the named tuple that an operator returns, always or with some params; None if it returns none."""
    declared = result_of(operator)
    whole = get_args(declared)[0] if get_origin(declared) is Annotated else declared
    return next((kind for kind in (get_args(whole) or (whole,)) if hasattr(kind, "_fields")), None)


def return_types():
    """Return the named tuples that public operators and functions return, by their names: "linalg_qr"."""
    kinds = {name: named_tuple_of(operator) for operator in registry.values() for name in operator.public_names}
    returned = {name: getattr(f, "__annotations__", {}).get("return") for name, f in functions.functions.items()}
    return {name.replace(".", "_"): kind for name, kind in (kinds | returned).items() if hasattr(kind, "_fields")}


def __getattr__(name):
    """`rg.ops.ns`, if somebody has registered an operator there."""
    if any(n.startswith(f"{name}::") for n in registry):
        return Namespace(name)
    raise AttributeError(f"module 'retrograd.ops' has no attribute {name!r}, nor is there an operator '{name}::...'")


_operators = {name: member for name, member in public().items() if isinstance(member, Operator)}

methods.add_operators(_operators)
mutate.add_in_place(_operators)
legacy.add_writing_functions(_operators)
inplace.add_functions(registry.values())
