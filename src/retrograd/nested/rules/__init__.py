"""The rules of nested tensors: how operators are decomposed into operators on buffers, by family as in `ops/`."""

from retrograd.nested.rules import attention as attention
from retrograd.nested.rules import dense_attention as dense_attention
from retrograd.nested.rules import einsum as einsum
from retrograd.nested.rules import index as index
from retrograd.nested.rules import join as join
from retrograd.nested.rules import linalg as linalg
from retrograd.nested.rules import nn as nn
from retrograd.nested.rules import norm as norm
from retrograd.nested.rules import pointwise as pointwise
from retrograd.nested.rules import reduce as reduce
from retrograd.nested.rules import scan as scan
from retrograd.nested.rules import select_along as select_along
from retrograd.nested.rules import view as view
