"""Draw the pictures of the guides into docs/images/guides, from runs of the code that the guides show.

python tools/pictures [PAGE ...]    all pages, or those given

`make pictures` runs this in the peers' environment, since the picture of from_pytorch needs PyTorch.
"""

import sys

import arrays  # noqa: F401 -- registers pictures, as the next ones do
import gradients  # noqa: F401
import networks  # noqa: F401
import pipelines  # noqa: F401
import start  # noqa: F401
from page import DOCS
from style import PICTURES, write

import retrograd as rg


def main() -> None:
    """Draw the pictures of the pages that the command line names."""
    folder = DOCS / "images" / "guides"
    folder.mkdir(exist_ok=True)
    unknown = set(sys.argv[1:]) - set(PICTURES)
    if unknown:
        sys.exit(f"no picture for {', '.join(sorted(unknown))}; there are {', '.join(sorted(PICTURES))}")
    for page in sys.argv[1:] or sorted(PICTURES):
        rg.manual_seed(0)
        print(write(page, folder))


if __name__ == "__main__":
    main()
