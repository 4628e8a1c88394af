"""The tables of NumPy's functions and ufuncs on tensors, filled by the modules that define them.

Functions that are operators under other names are generated from the table of all faces.
"""

from retrograd.interop.function_table import TABLE
from retrograd.interop.numpy_protocol import calculus as calculus
from retrograd.interop.numpy_protocol import creation as creation
from retrograd.interop.numpy_protocol import indexing as indexing
from retrograd.interop.numpy_protocol import introspection as introspection
from retrograd.interop.numpy_protocol import joins as joins
from retrograd.interop.numpy_protocol import linalg as linalg
from retrograd.interop.numpy_protocol import nanfunctions as nanfunctions
from retrograd.interop.numpy_protocol import products as products
from retrograd.interop.numpy_protocol import reductions as reductions
from retrograd.interop.numpy_protocol import shapes as shapes
from retrograd.interop.numpy_protocol import sorting as sorting
from retrograd.interop.numpy_protocol import special as special
from retrograd.interop.numpy_protocol import statistics as statistics
from retrograd.interop.numpy_protocol.shared import NUMPYS, function_of_row
from retrograd.interop.numpy_protocol.table import dotted_name as dotted_name
from retrograd.interop.numpy_protocol.table import functions as functions
from retrograd.interop.numpy_protocol.table import implements
from retrograd.interop.numpy_protocol.ufuncs import apply as apply
from retrograd.interop.signatures import parse

for _row in TABLE:
    for _signature in _row.numpy:
        implements(parse(_signature)[0])(function_of_row(_row, _signature, NUMPYS, __name__))
