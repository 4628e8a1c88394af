"""The module `torch` of processes that a program under the alias has spawned: importing it installs the alias."""

import sys

from retrograd.torch_alias import install

del sys.modules[__name__]  # this module, in whose place Python finds the alias
install()
