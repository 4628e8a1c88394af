"""`draw`: the SVG has every box once, correct arrows, repeat counts, and text that fits its box."""

import random
import re
from functools import cache
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.autograd.drawing.draw import SVG, draw
from retrograd.autograd.drawing.fold import post_dominators, repeats
from retrograd.autograd.drawing.layers import Arrow, Size, layout_boxes

from ..functions import doubling

pytestmark = pytest.mark.once("drawing is never compiled")

SPACE = "{http://www.w3.org/2000/svg}"


class Picture:
    """The elements of a picture."""

    def __init__(self, svg):
        self.root = ElementTree.fromstring(str(svg))
        self.groups = list(self.root.iter(f"{SPACE}g"))
        self.boxes = {g.get("id"): g for g in self.groups if "vertex" in g.get("class", "")}
        self.frames = [g for g in self.groups if g.get("class") == "frame"]
        self.lines = [g for g in self.groups if g.get("class") == "edge"]

    @property
    def caption(self):
        return next(t.text for t in self.root.iter(f"{SPACE}text") if t.get("class") == "caption")

    def label(self, identity):
        return " ".join(t.text for t in self.boxes[identity].iter(f"{SPACE}text"))

    def labels(self, kind):
        return sorted(self.label(i) for i, g in self.boxes.items() if kind in g.get("class").split())

    def edges(self):
        return sorted((self.label(line.get("data-from")), self.label(line.get("data-to"))) for line in self.lines)

    def tip(self, label):
        return next(g.find(f"{SPACE}title").text for i, g in self.boxes.items() if self.label(i) == label)

    def counts(self):
        return sorted(int(frame.get("data-count")) for frame in self.frames)


def rectangle(group):
    *_, rect = group.iter(f"{SPACE}rect")
    x, y, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def leaf(*shape):
    return rg.ones(*shape, requires_grad=True)


def chain(start, *operators):
    for operator in operators:
        start = operator(start)
    return start


def perceptron(layers, width=4):
    inner = [module for _ in range(layers) for module in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(*inner, nn.Linear(width, 2))


def encoder(layers):
    return nn.Sequential(*[nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True) for _ in range(layers)])


def tangled(size, seed=0):
    """Apply operators to values picked at random from the latest ones."""
    rng = random.Random(seed)
    pool = [leaf(3) for _ in range(4)]
    for _ in range(size):
        a, b = rng.sample(pool[-8:], 2)
        pool.append(a * b if rng.random() < 0.5 else (a + b).sin())
    return pool[-1].sum() + pool[-2].sum()


def samples():
    x = leaf(2, 3, 4)
    w = leaf(3)
    w4 = leaf(4, 4)
    return {
        "leaf": w,
        "diamond": (w.sin() * w.cos() + w).sum(),
        "perceptron": perceptron(2)(rg.ones(3, 4)).sum(),
        "deep perceptron": perceptron(20)(rg.ones(3, 4)).sum(),
        "encoder": encoder(1)(x).sum(),
        "deep encoder": encoder(6)(x).sum(),
        "recurrent": chain(rg.ones(2, 4), *[lambda h: (h @ w4 + w4.sum()).tanh()] * 20).sum(),
        "tied": ((w4[rg.tensor([0, 1])]).tanh() @ w4.T).sum(),
        "nested": chain(w, *[lambda x: chain(x, rg.exp, *[rg.sin] * 30)] * 20),
        "outputs": [w.sum(), (w * w).mean(), w.exp().sum()],
        "tangled": tangled(40),
        "long names": {"a" * 80: leaf(3)},
    }


@cache
def pictures():
    found = {}
    for name, outputs in samples().items():
        params = outputs if isinstance(outputs, dict) else None
        found[name] = Picture(draw(list(params.values()) if params else outputs, params=params))
    return found


# -------------------------------------------------------------------------------------- elements of the picture


def test_every_operator_and_leaf_is_there_once_with_its_arrows():
    w = leaf(3)
    a = w * 2
    drawn = Picture(draw((a.sin() * a.cos() + a.exp()).sum(), params={"w": w}))
    assert drawn.labels("leaf") == ["w float32[3]"]
    assert drawn.labels("operator") == ["add", "cos", "exp", "mul", "mul", "sin", "sum"]
    assert drawn.labels("output") == ["output float32[]"]
    assert drawn.caption == "7 operators · 1 leaf · 1 output"
    assert drawn.edges() == sorted([
        ("w float32[3]", "mul"), ("mul", "sin"), ("mul", "cos"), ("mul", "exp"), ("sin", "mul"), ("cos", "mul"),
        ("mul", "add"), ("exp", "add"), ("add", "sum"), ("sum", "output float32[]"),
    ])  # fmt: skip


def test_an_operand_without_gradient_is_not_in_the_picture():
    drawn = Picture(draw(leaf(3) * rg.ones(3)))
    assert drawn.caption == "1 operator · 1 leaf · 1 output"


def test_an_operand_used_twice_has_one_arrow():
    w = leaf(3)
    assert Picture(draw(w * w)).edges() == [("float32[3]", "mul"), ("mul", "output float32[3]")]


def test_a_single_leaf_is_its_own_output():
    drawn = Picture(draw(leaf(2, 3)))
    assert drawn.edges() == [("float32[2, 3]", "output float32[2, 3]")]


def test_several_outputs_are_numbered_and_share_what_they_share():
    w = leaf(3)
    a = w.exp()
    drawn = Picture(draw([a.sum(), a, rg.autograd.get_gradient_edge(w)]))
    assert drawn.edges() == sorted([
        ("float32[3]", "exp"), ("exp", "sum"), ("sum", "output 0 float32[]"), ("exp", "output 1 float32[3]"),
        ("float32[3]", "output 2"),
    ])  # fmt: skip


def test_leaves_are_named_by_a_dict_or_by_pairs():
    model = nn.Linear(3, 2)
    for params in (dict(model.named_parameters()), model.named_parameters()):
        drawn = Picture(draw(model(rg.ones(1, 3)), params=params))
        assert drawn.labels("leaf") == ["bias float32[2]", "weight float32[2, 3]"]


def test_the_pointer_shows_params_and_saved_values_until_they_are_freed():
    w = leaf(3, 4)
    out = (w * rg.ones(4)).sum(dim=0).exp().sum()
    drawn = Picture(draw(out))
    assert drawn.tip("mul").splitlines() == ["MulBackward0", "saves b: float32[4]"]
    assert "saves out: float32[4]" in drawn.tip("exp")
    out.backward()
    assert "freed by a backward pass" in Picture(draw(out)).tip("mul")


def test_a_user_s_function_has_the_name_of_its_class():
    assert Picture(draw(doubling(rg).apply(leaf(3)))).labels("operator") == ["Double"]


def test_drawing_leaves_no_trace_on_leaves():
    w = leaf(3)
    draw((w * w).sum())
    assert w._hooks is None


# ----------------------------------------------------------------------------------------------------- folding


def test_a_thousand_equal_operators_become_one_frame():
    w = leaf(3)
    drawn = Picture(draw(chain(w, *[lambda x: x * 1.0] * 1000).sum(), params={"w": w}))
    assert drawn.counts() == [1000]
    assert drawn.labels("operator") == ["mul", "sum"]
    assert drawn.caption == "1,001 operators · 1 leaf · 1 output"
    assert drawn.edges() == [("mul", "sum"), ("sum", "output float32[]"), ("w float32[3]", "mul")]


def test_equal_layers_become_one_frame_whatever_is_in_them():
    x = leaf(2, 3, 4)
    one, twelve = encoder(1), encoder(12)
    alone = Picture(draw(one(x).sum()))
    drawn = Picture(draw(twelve(x).sum(), params=twelve.named_parameters()))
    assert drawn.counts() == [12]
    assert drawn.labels("operator") == alone.labels("operator")
    assert len(drawn.lines) == len(alone.lines)
    assert "0–11.linear1.weight float32[8, 4]" in drawn.labels("leaf")


def test_two_large_layers_become_one_frame_too():
    x = leaf(2, 3, 4)
    alone, two = Picture(draw(encoder(1)(x).sum())), Picture(draw(encoder(2)(x).sum()))
    assert two.counts() == [2]
    assert two.edges() == alone.edges()


def test_layers_that_differ_in_shape_stay_separate():
    sizes = [4, *range(5, 25), 2]
    model = nn.Sequential(*[nn.Linear(a, b) for a, b in pairwise(sizes)])
    drawn = Picture(draw(model(rg.ones(1, 4)).sum()))
    assert drawn.counts() == []
    assert len(drawn.labels("leaf")) == 42


def test_few_layers_are_not_folded():
    assert Picture(draw(perceptron(2)(rg.ones(3, 4)).sum())).counts() == []


def test_frames_nest():
    def layer(x):
        return chain(x, *[rg.sin] * 30, rg.exp)

    drawn = Picture(draw(chain(leaf(3), *[layer] * 20)))
    assert drawn.counts() == [20, 30]
    assert drawn.labels("operator") == ["exp", "sin"]
    assert drawn.edges() == [
        ("exp", "output float32[3]"), ("float32[3]", "sin"), ("sin", "exp"),
    ]  # fmt: skip


def test_operands_of_all_repetitions_are_drawn_once_outside_of_the_frame():
    w, u = leaf(4, 4), leaf(4)
    scale = u.exp()
    drawn = Picture(draw(chain(leaf(2, 4), *[lambda h: ((h @ w) * scale).tanh()] * 20).sum(), params={"w": w}))
    assert drawn.counts() == [20]
    assert drawn.labels("operator") == ["exp", "matmul", "mul", "sum", "tanh"]
    (frame,) = drawn.frames
    inside = [label for label in map(drawn.label, drawn.boxes) if within(drawn, label, frame)]
    assert sorted(inside) == ["matmul", "mul", "tanh"]
    assert ("w float32[4, 4]", "matmul") in drawn.edges()
    assert ("exp", "mul") in drawn.edges()


def within(drawn, label, frame):
    (box,) = [rectangle(g) for i, g in drawn.boxes.items() if drawn.label(i) == label]
    outer = rectangle(frame)
    return outer[0] < box[0] and outer[1] < box[1] and box[2] < outer[2] and box[3] < outer[3]


def test_a_long_row_of_different_operators_is_cut_short_in_the_middle():
    rng = random.Random(0)
    names = [rng.choice(["sin", "cos", "tanh", "abs"]) for _ in range(1000)]
    drawn = Picture(draw(chain(leaf(3), *[getattr(rg, name) for name in names])))
    (more,) = drawn.labels("more")
    shown = drawn.labels("operator")
    assert int(more.split()[0].replace(",", "")) + len(shown) == 1000
    assert sorted(names[:4] + names[-len(shown) + 4 :]) == shown
    assert len(shown) < 12
    assert sum(int(n) for n in re.findall(r"× (\d+)", drawn.tip(more))) + len(shown) == 1000
    assert (names[3], more) in drawn.edges()


@pytest.mark.parametrize(("word", "found"), [
    ("ab" * 7 + "c", [(0, 2, 7)]),
    ("x" + "a" * 20 + "y", [(1, 1, 20)]),
    ("abcdefghijklm", []),
    ("aaa", []),  # too little to gain
    ("a" * 20 + "b" * 20, [(0, 1, 20), (20, 1, 20)]),
])  # fmt: skip
def test_repeats_are_found_where_they_are(word, found):
    assert repeats(word, [1] * len(word)) == found


def test_post_dominators_are_those_of_the_definition():
    rng = random.Random(1)
    for _ in range(200):
        size = rng.randint(1, 9)
        consumers = [[c for c in range(i + 1, size) if rng.random() < 0.35] for i in range(size)]
        ways = [None] * size
        for i in reversed(range(size)):  # the vertices on every way from i to an end
            onward = [ways[c] for c in consumers[i]] or [{size}]
            ways[i] = {i} | set.intersection(*onward)
        assert post_dominators(consumers) == [min(ways[i] - {i}) for i in range(size)]


# --------------------------------------------------------------------------------------------------- the look


@pytest.mark.parametrize("name", samples())
def test_boxes_do_not_overlap_and_are_in_the_picture(name):
    drawn = pictures()[name]
    boxes = [rectangle(g) for g in drawn.boxes.values()]
    for a, b in combinations(boxes, 2):
        assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
    width, height = float(drawn.root.get("width")), float(drawn.root.get("height"))
    left, top = map(float, re.findall(r"[\d.]+", next(g.get("transform") for g in drawn.groups if g.get("transform"))))
    for box in boxes:
        assert left + box[0] >= 0
        assert left + box[2] <= width
        assert top + box[3] <= height


def test_text_fits_its_box_in_the_widest_of_the_fonts():
    pytest.importorskip("matplotlib")
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    fonts = {  # DejaVu's are wider than Inter, Helvetica, Arial and the usual fonts for code
        "name": FontProperties(family="DejaVu Sans", weight="bold", size=13),
        "detail": FontProperties(family="DejaVu Sans Mono", size=11),
    }
    for drawn in pictures().values():
        for group in drawn.boxes.values():
            left, _, right, _ = rectangle(group)
            for text in group.iter(f"{SPACE}text"):
                wide, _, _ = TextToPath().get_text_width_height_descent(text.text, fonts[text.get("class")], False)
                assert wide <= right - left - 8, text.text
                assert float(text.get("x")) == pytest.approx((left + right) / 2, abs=0.2)


def points(line):
    """Yield a line's points, of straight and curved segments alike, from its path."""
    path = line.find(f"{SPACE}path").get("d")
    x = y = 0.0
    for command, text in re.findall(r"([MVC])([^MVC]*)", path):
        numbers = [float(n) for n in text.split()]
        if command == "M":
            x, y = numbers
            yield x, y
        elif command == "V":
            y0, (y,) = y, numbers
            yield from ((x, y0 + (y - y0) * k / 20) for k in range(1, 21))
        else:
            (x0, y0), (x1, y1, x2, y2, x, y) = (x, y), numbers
            for k in range(1, 21):
                t, s = k / 20, 1 - k / 20
                yield (
                    s**3 * x0 + 3 * s * s * t * x1 + 3 * s * t * t * x2 + t**3 * x,
                    s**3 * y0 + 3 * s * s * t * y1 + 3 * s * t * t * y2 + t**3 * y,
                )


@pytest.mark.parametrize("name", samples())
def test_arrows_go_down_from_box_to_box_and_through_no_other(name):
    drawn = pictures()[name]
    boxes = {identity: rectangle(g) for identity, g in drawn.boxes.items()}
    for line in drawn.lines:
        source, target = boxes[line.get("data-from")], boxes[line.get("data-to")]
        course = list(points(line))
        assert all(a[1] <= b[1] + 0.11 for a, b in pairwise(course))
        assert course[0][1] == pytest.approx(source[3], abs=0.2)
        assert source[0] < course[0][0] < source[2]
        assert course[-1][1] == pytest.approx(target[1], abs=7)
        assert target[0] < course[-1][0] < target[2]
        others = [box for i, box in boxes.items() if i not in (line.get("data-from"), line.get("data-to"))]
        for x, y in course:
            assert not any(b[0] < x < b[2] and b[1] < y < b[3] for b in others)


@pytest.mark.parametrize("name", samples())
def test_arrows_that_meet_at_a_box_don_t_cross_above_it(name):
    drawn = pictures()[name]
    for a, b in combinations(drawn.lines, 2):
        if a.get("data-to") == b.get("data-to"):
            (x, y), (other, _) = list(points(a))[-1], list(points(b))[-1]
            before = [next(px for px, py in points(line) if py >= y - 28) for line in (a, b)]
            assert abs(before[0] - before[1]) < 1 or (x < other) == (before[0] < before[1])


def test_long_arrows_bend_at_their_ends_only():
    drawn = pictures()["encoder"]
    assert max(line.find(f"{SPACE}path").get("d").count("C") for line in drawn.lines) == 2


def test_badges_are_passed_by_no_arrow():
    for drawn in pictures().values():
        badges = [rectangle(g) for g in drawn.groups if g.get("class") == "badge"]
        for line in drawn.lines:
            for x, y in points(line):
                assert not any(b[0] < x < b[2] and b[1] < y < b[3] for b in badges)


def crossings(placed, arrows):
    ends = [(placed.courses[a[:2]][0][0], placed.courses[a[:2]][-1][0]) for a in arrows]
    return sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(ends, 2))


def test_rows_are_sorted_so_that_nothing_crosses_where_nothing_must():
    arrows = [Arrow(f"s{i}", f"t{j}") for j in range(4) for i in (j, j + 1)]
    boxes = [end for arrow in arrows for end in arrow[:2]]
    for seed in range(30):
        random.Random(seed).shuffle(boxes)
        assert crossings(layout_boxes(dict.fromkeys(boxes, Size(40, 20)), arrows), arrows) == 0


def test_long_arrows_are_straight_between_their_ends():
    names = [f"v{i}" for i in range(12)]
    arrows = [Arrow(a, b) for a, b in pairwise(names)] + [Arrow("v0", "v11")]
    placed = layout_boxes(dict.fromkeys(names, Size(40, 20)), arrows)
    bends = placed.courses["v0", "v11"][1:-1]
    assert len(bends) == 2 * 10
    assert len({round(x, 6) for x, _ in bends}) == 1
    middle = {round(placed.tops[name][0], 6) for name in names[1:-1]}
    assert len(middle) == 1


def test_the_picture_follows_light_and_dark_and_needs_nothing_from_elsewhere():
    text = str(draw(leaf(3).sum()))
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|@import|url\(|<script|<image|href", text)
    declared = set(re.findall(r"(--[a-z-]+):", text))
    assert set(re.findall(r"var\((--[a-z-]+)\)", text)) <= declared


def test_hostile_names_stay_text():
    hostile = '</text><script>alert("1")</script>&amp;'
    w = leaf(3)
    drawn = Picture(draw(w.sum(), params={hostile: w}))
    assert hostile in drawn.tip(drawn.labels("leaf")[0])
    assert not list(drawn.root.iter(f"{SPACE}script"))


def test_the_same_graph_gives_the_same_text():
    assert len({str(draw(tangled(30))) for _ in range(3)}) == 1


def test_a_large_graph_is_drawn_without_recursion():
    drawn = Picture(draw(tangled(600)))
    assert len(drawn.boxes) > 600


# ----------------------------------------------------------------------------------------------- the SVG object


def test_a_picture_is_saved_and_shown_as_its_text(tmp_path):
    picture = draw(leaf(3).sum())
    picture.save(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == str(picture) == picture._repr_svg_()
    assert [path.name for path in tmp_path.iterdir()] == ["graph.svg"]


def test_a_failed_save_leaves_the_old_picture(tmp_path, monkeypatch):
    path = tmp_path / "graph.svg"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        draw(leaf(3).sum()).save(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["graph.svg"]


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.svg, got 'graph\.png'"):
        SVG("<svg/>").save(tmp_path / "graph.png")


def test_graphs_that_can_not_be_drawn_are_refused_by_name():
    with pytest.raises(RuntimeError, match=r"output 1, float32\[2\], does not require grad.*explain"):
        draw([leaf(3), rg.ones(2)])
    with pytest.raises(TypeError, match="output 0 must be a Tensor or GradientEdge, got int"):
        draw([3])
    with pytest.raises(ValueError, match="nothing to draw"):
        draw([])
    with pytest.raises(TypeError, match="params must be tensors by name, got 'w': int"):
        draw(leaf(3), params={"w": 3})
