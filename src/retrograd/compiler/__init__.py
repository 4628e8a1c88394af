"""`rg.compile`: functions and whole training steps as programs of kernel calls, with the results of the eager run."""

from retrograd.compiler.api import compile as compile
from retrograd.compiler.api import list_backends as list_backends
from retrograd.compiler.compiled_function import is_compiling as is_compiling
from retrograd.compiler.compiled_function import is_compiling as is_dynamo_compiling
from retrograd.compiler.compiled_function import reset as reset
from retrograd.compiler.disabling import allow_in_graph as allow_in_graph
from retrograd.compiler.disabling import assume_constant_result as assume_constant_result
from retrograd.compiler.disabling import cudagraph_mark_step_begin as cudagraph_mark_step_begin
from retrograd.compiler.disabling import disable as disable
from retrograd.compiler.disabling import nested_compile_region as nested_compile_region
from retrograd.compiler.dynamic_sizes import mark_dynamic as mark_dynamic
from retrograd.compiler.dynamic_sizes import mark_static as mark_static
from retrograd.compiler.dynamic_sizes import maybe_mark_dynamic as maybe_mark_dynamic
from retrograd.compiler.explanation import explain as explain
from retrograd.compiler.stance import set_stance as set_stance
from retrograd.foundation.exporting import is_exporting as is_exporting
from retrograd.foundation.lazy_imports import lazy_names

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "explain",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "load_compiled_function",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "nested_compile_region",
    "reset",
    "set_stance",
]
__getattr__, __dir__ = lazy_names(__name__, {"load_compiled_function": "retrograd.compiler.saved_function"})
