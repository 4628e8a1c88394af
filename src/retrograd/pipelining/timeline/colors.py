"""The colours and names shared by pages and pictures of timelines."""

from retrograd.pipelining.schedules.actions import Kind

COLOURS = {Kind.F: "#2f6fde", Kind.B: "#0c8f82", Kind.I: "#0b7285", Kind.W: "#84c66b", Kind.R: "#8a6fd1"}
NAMES = {
    Kind.F: "forward",
    Kind.B: "backward",
    Kind.I: "input gradient",
    Kind.W: "weight gradient",
    Kind.R: "recomputation",
    Kind.OFFLOAD: "offload",
    Kind.FETCH: "fetch",
    Kind.REDUCE_GRAD: "start of a gradient sum",
    Kind.WAIT_GRAD: "wait for a gradient sum",
}
OTHER = "#7d8898"
DARKEST = 0.3  # relative darkening from the first to the last of a rank's stages


def name_of(kind: Kind) -> str:
    """Return the legend text of a kind.

    >>> name_of(Kind.B), name_of(Kind.SEND_F)
    ('backward', 'SEND_F')
    """
    return NAMES.get(kind, kind.value)


def shades(kind: Kind, stages: int) -> list[str]:
    """Return the colour of a kind for each of a rank's stages in order, each darker than the one before.

    >>> shades(Kind.F, 2)
    ['#2f6fde', '#204d9b']
    """
    parts = [int(COLOURS.get(kind, OTHER)[at : at + 2], 16) for at in (1, 3, 5)]
    lights = [1 - DARKEST * stage / max(stages - 1, 1) for stage in range(max(stages, 1))]
    return ["#" + "".join(f"{int(part * light):02x}" for part in parts) for light in lights]


def ink_on(kind: Kind) -> str:
    """Return the text colour for a box of that kind."""
    return "#10240f" if kind is Kind.W else "#ffffff"
