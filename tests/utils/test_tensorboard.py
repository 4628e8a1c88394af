"""Event files contain what was added; read here by a separate parser, and in tests/parity by TensorBoard."""

import io
import struct
import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest

import retrograd as rg
from retrograd.utils.tensorboard import SummaryWriter


def fields(data):
    """Return the fields of a message: number -> values, bytes unchanged; without zeros, which are not written."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            value = data[at : at + size]
            at += size
        found.setdefault(key >> 3, []).append(value)
    return found


def events(folder):
    """Return the fields of each event in the file in a folder, after the one with the version."""
    (file,) = [path for path in folder.iterdir() if path.is_file()]
    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        found.append(fields(data[at + 12 : at + 12 + size]))
        at += size + 16
    assert found[0][3] == [b"brain.Event:2"]
    return found[1:]


def summaries(folder):
    """Return (step, tag, value's fields) of everything in the file in a folder."""
    values = [(event.get(2, [0])[0], fields(fields(event[5][0])[1][0])) for event in events(folder)]
    return [(step, value[1][0].decode(), value) for step, value in values]


def written(folder, add):
    with SummaryWriter(folder) as writer:
        add(writer)
    return summaries(folder)


def test_scalars_are_points_with_their_steps(tmp_path):
    def add(writer):
        for step, value in enumerate([1.5, rg.tensor(2, requires_grad=False), rg.tensor([1e300], dtype=rg.float64)]):
            writer.add_scalar("loss/é", value, 2**40 * step)

    got = [(step, tag, *struct.unpack("<f", value[2][0])) for step, tag, value in written(tmp_path, add)]
    assert got == [(0, "loss/é", 1.5), (2**40, "loss/é", 2.0), (2**41, "loss/é", float("inf"))]


@pytest.mark.parametrize(
    ("values", "bins", "edges", "counts"),
    [
        ([0.0, 1.0, 2.0, 4.0], 2, [0, 2, 4], [0, 2, 2]),
        ([[3, 3]], 1, [3, 4], [0, 2]),
        ([0.5, 1.5, 9.0], [0, 1, 2], [0, 1, 2], [0, 1, 1]),
    ],
)
def test_histograms_count_values_between_edges(values, bins, edges, counts, tmp_path):
    ((_, _, value),) = written(tmp_path, lambda writer: writer.add_histogram("h", rg.tensor(values), bins=bins))
    histogram = {field: [bytes(8)] for field in range(1, 6)} | fields(value[5][0])
    got = {field: struct.unpack(f"<{len(parts[0]) // 8}d", parts[0]) for field, parts in histogram.items()}
    flat = rg.tensor(values).reshape(-1).tolist()
    assert [got[field][0] for field in (1, 2, 3, 4, 5)] == [
        min(flat), max(flat), len(flat), sum(flat), sum(x * x for x in flat),
    ]  # fmt: skip
    assert (list(got[6]), list(got[7])) == (edges, counts)


def test_several_scalars_are_runs_side_by_side(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("a/loss", {"train": 1.0, "test": 2.0}, 3)
    assert [summaries(tmp_path / run)[0][:2] for run in ("a_loss_train", "a_loss_test")] == [(3, "a/loss")] * 2


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_png_files_of_the_same_pixels(channels, tmp_path):
    pixels = rg.arange(2 * 3 * channels).reshape(2, 3, channels).to(rg.uint8)
    added = written(tmp_path, lambda writer: writer.add_image("image", pixels, dataformats="HWC"))
    image = fields(added[0][2][4][0])
    assert (image[1], image[2], image[3]) == ([2], [3], [channels])
    found = matplotlib.image.imread(io.BytesIO(image[4][0]))  # floats from 0 to 1, without a dimension for grey
    assert (found.reshape(2, 3, channels) * 255).round().tolist() == pixels.tolist()


@pytest.mark.parametrize("dataformats", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("count", "rows", "columns"), [(1, 1, 1), (3, 1, 3), (8, 1, 8), (11, 2, 8)])
def test_images_are_joined_in_rows_of_eight(count, rows, columns, dataformats, tmp_path):
    images = rg.arange(1, 1 + 2 * 3 * 3 * count).reshape(count, 2, 3, 3).to(rg.uint8)
    given = images if dataformats == "NHWC" else images.permute(0, 3, 1, 2)
    added = written(tmp_path, lambda writer: writer.add_images("images", given, dataformats=dataformats))
    image = fields(added[0][2][4][0])
    assert (image[1], image[2]) == ([2 * rows], [3 * columns])
    found = (matplotlib.image.imread(io.BytesIO(image[4][0])) * 255).round()
    for i in range(rows * columns):
        row, column = 2 * (i // columns), 3 * (i % columns)
        expected = images[i].tolist() if i < count else [[[0] * 3] * 3] * 2
        assert found[row : row + 2, column : column + 3].tolist() == expected


def test_a_full_queue_is_written(tmp_path):
    writer = SummaryWriter(tmp_path, max_queue=3)
    for step in range(5):
        writer.add_scalar("loss", 0.5, step)
    assert len(summaries(tmp_path)) == 3
    writer.close()


def test_a_writer_that_resumes_purges_later_steps(tmp_path):
    SummaryWriter(tmp_path, purge_step=7).close()
    (start,) = events(tmp_path)
    assert (start[2], fields(start[7][0])) == ([7], {1: [1]})  # the step, and the message SessionLog with START


def test_added_events_are_written_after_a_flush(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.add_text("note", "hello")
    writer.flush()
    assert summaries(tmp_path)[0][1] == "note/text_summary"
    writer.close()


@pytest.mark.parametrize(("package", "text"), [("tensorboardX", "SummaryWriter needs tensorboardX"), ("PIL", "Pillow")])
def test_a_missing_package_is_an_error_that_names_the_extra(package, text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{text}: pip install 'retrograd\[tensorboard\]'"):
        SummaryWriter(tmp_path).add_image("image", rg.ones(1, 2, 2))


def test_the_module_loads_without_the_packages():
    program = "import sys; from retrograd.utils import tensorboard; print({'tensorboardX', 'PIL'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "set()\n"


def test_without_a_folder_the_run_has_the_name_of_its_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="-a") as writer:
        assert writer.log_dir.startswith("runs/")
        assert writer.log_dir.endswith("-a")


@pytest.mark.parametrize(
    ("add", "told"),
    [
        (lambda w: w.add_scalar("a", rg.ones(2)), "must be one number, got shape"),
        (lambda w: w.add_histogram("a", rg.ones(0)), "has no numbers"),
        (lambda w: w.add_histogram("a", rg.tensor([1.0, float("nan")])), "1 of 2 numbers of 'a' are not finite"),
        (lambda w: w.add_image("a", rg.ones(2, 2)), "dataformats='CHW'"),
        (lambda w: w.add_image("a", rg.ones(2, 2, 2)), "1, 3 or 4 channels, got 2"),
        (lambda w: w.add_images("a", rg.ones(3, 2, 2)), "dataformats='NCHW'"),
        (lambda w: w.add_video("a", rg.ones(1, 2, 3, 4)), "frames, channels, height, width"),
        (lambda w: w.add_histogram_raw("a", 0, 1, 2, 1, 1, [0.5, 1], [2]), "2 limits for 1 counts"),
        (lambda w: w.add_pr_curve("a", rg.ones(2), rg.ones(3)), "'a' differ in shape"),
        (lambda w: w.add_pr_curve("a", rg.ones(2), rg.tensor([0.5, float("nan")])), "must be probabilities"),
        (lambda w: w.add_pr_curve_raw("a", *[rg.ones(3)] * 6), "must have 127 numbers each"),
        (lambda w: w.add_custom_scalars({"a": {"b": ["Margin", ["loss"]]}}), "chart 'b' must be"),
        (lambda w: w.add_mesh("a", rg.ones(1, 4, 2)), "vertices of 'a' must have shape"),
        (lambda w: w.add_embedding(rg.ones(4)), "must have shape"),
        (lambda w: w.add_embedding(rg.ones(4, 2), ["a"]), "1 entries of metadata for 4 vectors"),
        (lambda w: w.add_embedding(rg.ones(1, 2), label_img=rg.ones(1, 3, 2, 4)), "label_img must have shape"),
        (lambda w: w.add_embedding(rg.ones(1, 2), [["a"]], None, 0, "t", ["n", "m"]), "must have the columns"),
    ],
)
def test_values_that_can_not_be_shown_are_refused_and_nothing_is_written(add, told, tmp_path):
    with SummaryWriter(tmp_path) as writer, pytest.raises(ValueError, match=told):
        add(writer)
    assert summaries(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 1  # and no further file


def test_videos_are_moving_pictures_side_by_side(tmp_path):
    from PIL import Image

    with SummaryWriter(tmp_path) as writer:
        writer.add_video("noise", rg.rand(2, 5, 3, 4, 6), 7, fps=10)
    ((step, tag, value),) = summaries(tmp_path)
    assert (step, tag) == (7, "noise")
    with Image.open(io.BytesIO(fields(value[4][0])[4][0])) as shown:
        assert (shown.format, shown.size, shown.n_frames, shown.info["duration"]) == ("GIF", (12, 4), 5, 100)


def test_graphs_have_a_node_for_each_operator_and_parameter(tmp_path, capsys):
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(rg.nn.Sequential(rg.nn.Linear(3, 4), rg.nn.ReLU()), rg.ones(2, 3), verbose=True)
    assert "linear" in capsys.readouterr().out
    (event,) = events(tmp_path)
    names = [fields(node)[1][0].decode() for node in fields(event[4][0])[1]]
    assert names == [
        *("Sequential/input_1", "Sequential/0/weight", "Sequential/0/bias", "Sequential/0/linear"),
        *("Sequential/1/relu", "Sequential/output"),
    ]


def test_hyperparameters_have_a_run_of_their_own(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": rg.tensor(0.5), "name": "a", "on": True}, {"loss": 0.25}, {"lr": [0.5, 1]}, "run", 7)
    found = {tag: value for _, tag, value in summaries(tmp_path / "run")}
    assert list(found) == [
        "_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "loss",
    ]  # fmt: skip
    plugin = fields(fields(found["_hparams_/experiment"][9][0])[1][0])
    assert plugin[1] == [b"hparams"]
    experiment = fields(fields(plugin[2][0])[2][0])
    assert [fields(info)[1] for info in experiment[4]] == [[b"lr"], [b"name"], [b"on"]]
    assert [fields(info)[4] for info in experiment[4]] == [[3], [1], [2]]
    assert fields(fields(experiment[5][0])[1][0])[2] == [b"loss"]
    assert struct.unpack("<f", found["loss"][2][0]) == (0.25,)


@pytest.mark.parametrize(
    ("values", "domains", "kind", "message"),
    [
        ({"a": [1]}, {}, TypeError, "'a' must be a number, a truth or text, got list"),
        ({"a": 1}, {"b": [1]}, ValueError, r"hparam_domain_discrete has \['b'\], which hparam_dict has not"),
    ],
)
def test_hyperparameters_that_cannot_be_stored_are_refused_before_anything_is_written(
    values, domains, kind, message, tmp_path
):
    with SummaryWriter(tmp_path) as writer, pytest.raises(kind, match=message):
        writer.add_hparams(values, {}, domains, "run")
    assert not (tmp_path / "run").exists()


def test_figures_are_pictures_and_are_closed_if_requested(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = plt.figure(figsize=(2, 1), dpi=30)

    def add(writer):
        writer.add_figure("kept", figure, 1, close=False)
        assert plt.fignum_exists(figure.number)
        writer.add_figure("closed", figure, 2)
        assert not plt.fignum_exists(figure.number)

    for (step, _, value), expected in zip(written(tmp_path, add), (1, 2), strict=True):
        image = fields(value[4][0])
        assert (step, image[1], image[2], image[3]) == (expected, [30], [60], [4])
        assert image[4][0].startswith(b"\x89PNG")


def test_boxes_are_red_frames_in_a_picture(tmp_path):
    image, boxes = rg.zeros(3, 8, 10), rg.tensor([[1, 2, 6, 5]])
    ((_, _, plain),) = written(tmp_path / "a", lambda writer: writer.add_image_with_boxes("boxes", image, boxes))
    found = matplotlib.image.imread(io.BytesIO(fields(plain[4][0])[4][0]))
    assert found[2, 1:7].tolist() == [[1, 0, 0]] * 6
    assert found[7].tolist() == [[0, 0, 0]] * 10
    ((_, _, large),) = written(
        tmp_path / "b", lambda writer: writer.add_image_with_boxes("boxes", image, boxes, rescale=2, labels=["cat"])
    )
    assert [fields(large[4][0])[side] for side in (1, 2)] == [[16], [20]]
    with SummaryWriter(tmp_path) as writer, pytest.raises(ValueError, match="2 labels for 1 boxes"):
        writer.add_image_with_boxes("boxes", image, boxes, labels=["cat", "dog"])


def test_histograms_choose_their_edges(tmp_path):
    x = rg.linspace(-3, 2, 500) ** 3
    _, edges = np.histogram(x.double().numpy(), "auto")
    for bins, count in (("auto", len(edges)), ("tensorflow", 640)):
        ((_, _, value),) = written(tmp_path / bins, lambda writer, bins=bins: writer.add_histogram("x", x, 1, bins))
        histogram = fields(value[5][0])
        limits, counts = (struct.unpack(f"<{count}d", histogram[field][0]) for field in (6, 7))
        assert sum(counts) == 500
        assert counts[-1] > 0
        assert limits[-1] >= x.amax().item()
        if bins == "auto":
            np.testing.assert_allclose(limits, edges)


def test_graphs_of_onnx_are_refused_with_the_way_out(tmp_path):
    with SummaryWriter(tmp_path) as writer, pytest.raises(NotImplementedError, match=r"writer\.add_graph"):
        writer.add_onnx_graph("model.onnx")


def test_tensors_of_dtypes_that_tensorboard_lacks_are_refused(tmp_path):
    with SummaryWriter(tmp_path) as writer, pytest.raises(ValueError, match="unsupported tensor dtype uint32"):
        writer.add_tensor("x", rg.ones(2, dtype="uint32"))
