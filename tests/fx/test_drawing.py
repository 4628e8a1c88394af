"""Pictures of graphs: their contents, the colors of stages, and refused arguments."""

import re
from xml.etree import ElementTree

import pytest

import retrograd as rg
from retrograd import fx, nn

NET = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def boxes(picture) -> dict[str, str]:
    """Return the class of each box by the first line of its text."""
    root = ElementTree.fromstring(str(picture))
    found = [g for g in root.iter("{http://www.w3.org/2000/svg}g") if g.get("id")]
    return {g[2].text: g.get("class") for g in found}


def test_every_node_is_a_box_and_every_use_an_arrow():
    module = fx.symbolic_trace(NET)
    assert boxes(fx.draw(module)) == {
        "input": "vertex leaf", "0": "vertex operator", "1": "vertex operator", "2": "vertex operator",
        "output": "vertex output",
    }  # fmt: skip
    assert str(fx.draw(module.graph)).count('class="edge"') == 4


def test_stages_have_their_colours_and_a_legend():
    module = fx.symbolic_trace(NET)
    by_name = fx.draw(module, {"_0": 0, "_1": 0, "_2": 1})
    for node, stage in zip(module.graph.find_nodes(op="call_module"), (0, 0, 1), strict=True):
        node.meta["stage"] = stage
    by_meta = fx.draw(module)
    assert str(by_meta) == str(by_name) == str(fx.draw(module, lambda node: node.meta.get("stage")))
    found = boxes(by_meta)
    assert [found[name] for name in "012"] == [
        "vertex operator stage-0",
        "vertex operator stage-0",
        "vertex operator stage-1",
    ]
    fills = re.findall(r"\.stage-(\d) rect \{ fill: (#\w+)", str(by_meta))
    assert len(fills) == len({colour for _, colour in fills}) == 4  # two stages, light and dark
    assert "1 output · 2 stages" in str(by_meta)
    assert ">stage 1</text>" in str(by_meta)


def test_parameters_read_by_one_stage_have_its_colour():
    module = fx.trace(NET, rg.ones(3, 4))
    found = boxes(fx.draw(module, {"linear": 0, "relu": 0, "linear_1": 1}))
    assert found["0.weight"] == "vertex leaf stage-0"
    assert found["2.bias"] == "vertex leaf stage-1"
    assert found["input"] == "vertex leaf"


def test_types_are_shown_and_the_tooltip_shows_more():
    text = str(fx.draw(fx.trace(NET, rg.ones(3, 4))))
    assert "float32[3, 8]" in text
    assert "call_function[target=relu]" in text


def test_objects_that_are_no_graphs_are_refused():
    with pytest.raises(TypeError, match="a graph or a graph module, got Sequential"):
        fx.draw(NET)
    with pytest.raises(KeyError):
        fx.draw(fx.symbolic_trace(NET), {"nothing": 0})
