"""`python -m retrograd.torch_alias` runs a program for which `import torch` imports this package."""

import sys

from retrograd.torch_alias import main

if __name__ == "__main__":
    main(sys.argv[1:])
