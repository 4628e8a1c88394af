"""The rules of sparse tensors: operators on them as operators on values and constant patterns."""

from retrograd.sparse.rules import pointwise as pointwise
from retrograd.sparse.rules import products as products
from retrograd.sparse.rules import reductions as reductions
from retrograd.sparse.rules import view as view
