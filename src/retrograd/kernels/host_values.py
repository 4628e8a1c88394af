"""Whether the elements of arrays can be looked at at no cost: in host memory they can, on a device that would wait.

On a device, checks of values are left out, and what depends on a rare value is computed in any case.
"""

on_host = True
