"""TensorBoard reads the event files written by the summary writer."""

import io

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pytest

import retrograd as rg
from retrograd.utils.tensorboard import SummaryWriter

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def test_tensorboard_reads_what_was_written(tmp_path):
    picture = rg.rand(3, 4, 5)
    with SummaryWriter(tmp_path) as writer:
        for step in range(5):
            writer.add_scalar("loss", 1 / (step + 1), step, walltime=100.0 + step)
        writer.add_histogram("weights", rg.linspace(-1, 1, 100), 7)
        writer.add_text("note", "# A *title*", 2)
        writer.add_image("picture", picture, 1)
    read = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.wall_time) for e in read.Scalars("loss")] == [(i, 100.0 + i) for i in range(5)]
    np.testing.assert_allclose([e.value for e in read.Scalars("loss")], [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])
    (event,) = read.Histograms("weights")
    histogram = event.histogram_value
    assert (event.step, histogram.num, histogram.min, histogram.max) == (7, 100, -1, 1)
    assert sum(histogram.bucket) == 100
    assert len(histogram.bucket) == len(histogram.bucket_limit) == 31
    (text,) = read.Tensors("note/text_summary")
    assert text.tensor_proto.string_val == [b"# A *title*"]
    assert read.summary_metadata["note/text_summary"].plugin_data.plugin_name == "text"
    (image,) = read.Images("picture")
    assert (image.height, image.width) == (4, 5)
    shown = matplotlib.image.imread(io.BytesIO(image.encoded_image_string))
    np.testing.assert_allclose(shown, picture.permute(1, 2, 0).numpy(), atol=1 / 255)


def hparams_of(folder):
    """Return what the plugin's own reader finds in an event file: the data of each tag, and the metrics."""
    metadata = pytest.importorskip("tensorboard.plugins.hparams.metadata")
    read = accumulator.EventAccumulator(str(folder)).Reload()
    found = {
        tag: metadata._parse_plugin_data_as(read.summary_metadata[tag].plugin_data.content, kind)
        for tag, kind in (
            (metadata.EXPERIMENT_TAG, "experiment"),
            (metadata.SESSION_START_INFO_TAG, "session_start_info"),
            (metadata.SESSION_END_INFO_TAG, "session_end_info"),
        )
    }
    scalars = {name: [(e.step, e.value) for e in read.Scalars(name)] for name in read.Tags()["scalars"]}
    return found, scalars


def test_hyperparameters_read_as_those_that_pytorch_writes(tmp_path):
    their_writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter
    # A truth is one here, and a number there, though the format has truths.
    given = {"lr": 0.1, "layers": 3, "optimizer": "Adam"}, {"loss": 0.25, "score": 3}
    for name, make in (("mine", SummaryWriter), ("theirs", their_writer)):
        writer = make(tmp_path / name)
        writer.add_hparams(*given, {"optimizer": ["Adam", "SGD"]}, run_name="run", global_step=4)
        writer.close()
    assert hparams_of(tmp_path / "mine" / "run") == hparams_of(tmp_path / "theirs" / "run")


def test_figures_are_pictures(tmp_path):
    figure, axes = plt.subplots(figsize=(3, 2), dpi=50)
    axes.plot([1, 2])
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("figure", figure, 3)
    assert not plt.fignum_exists(figure.number)
    (image,) = accumulator.EventAccumulator(str(tmp_path)).Reload().Images("figure")
    assert (image.step, image.height, image.width) == (3, 100, 150)
    assert matplotlib.image.imread(io.BytesIO(image.encoded_image_string)).shape == (100, 150, 4)


LABELS, PREDICTIONS = np.array([1, 0, 1, 1, 0, 0]), np.array([0.9, 0.2, 0.4, 0.7, 0.6, 0.1])
CURVE = [np.linspace(0, 5, 4) + i for i in range(4)] + [np.linspace(0.2, 1, 4), np.linspace(1, 0, 4)]


def write_for_plugins(writer):
    """Add something for each plugin, with both libraries' writers."""
    writer.add_pr_curve("curve", LABELS, PREDICTIONS, 3, weights=np.arange(6.0))
    writer.add_pr_curve_raw("raw curve", *CURVE, 1, num_thresholds=4)
    charts = {"all": ["Multiline", ["loss", "score"]], "one": ["Margin", ["loss", "low", "high"]]}
    writer.add_custom_scalars({"charts": charts})
    vertices = np.arange(12.0, dtype=np.float32).reshape(1, 4, 3)
    writer.add_mesh("mesh", vertices, vertices.astype(np.uint8), np.array([[[0, 1, 2]]]), {"lights": []}, 2)
    writer.add_histogram_raw("counts", 0, 1, 3, 1.5, 1.25, [0.5, 1], [1, 2], 4)
    writer.add_audio("sound", np.sin(np.arange(100) / 5)[None], 5, 8000)
    writer.close()


def test_what_plugins_show_reads_as_what_pytorch_writes(tmp_path):
    their_writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter
    found = []
    for name, make in (("mine", SummaryWriter), ("theirs", their_writer)):
        write_for_plugins(make(str(tmp_path / name)))
        read = accumulator.EventAccumulator(str(tmp_path / name)).Reload()
        found.append(read)
    mine, theirs = found
    assert mine.Tags() == theirs.Tags()
    assert len(mine.Tags()["tensors"]) == 6
    for tag in mine.Tags()["tensors"]:
        (a,), (b,) = mine.Tensors(tag), theirs.Tensors(tag)
        plugins = [read.summary_metadata[tag].plugin_data for read in found]
        assert (plugins[0], a.step, a.tensor_proto) == (plugins[1], b.step, b.tensor_proto)
    assert mine.Histograms("counts")[0].histogram_value == theirs.Histograms("counts")[0].histogram_value
    (a,), (b,) = mine.Audio("sound"), theirs.Audio("sound")
    assert (a.sample_rate, a.length_frames, a.content_type) == (b.sample_rate, b.length_frames, b.content_type)
    a, b = (np.frombuffer(sound.encoded_audio_string[44:], np.int16).astype(int) for sound in (a, b))
    assert abs(a - b).max() <= 1  # rounded to nearest here, towards 0 there


def test_embeddings_read_as_those_that_pytorch_writes(tmp_path):
    torch = pytest.importorskip("torch")
    their_writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter
    images = np.random.default_rng(0).random((4, 3, 8, 8))
    for name, make, tensor in (("mine", SummaryWriter, rg.tensor), ("theirs", their_writer, torch.tensor)):
        with make(str(tmp_path / name)) as writer:
            writer.add_embedding(np.arange(8.0).reshape(4, 2), list("abcd"), tensor(images), 1, "first")
            writer.add_embedding(np.eye(4), [["a", 1]] * 4, None, 2, "second", ["name", "number"])
    read = [
        {
            str(path.relative_to(tmp_path / name)): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file() and "tfevents" not in path.name
        }
        for name in ("mine", "theirs")
    ]
    pictures = [matplotlib.image.imread(io.BytesIO(files.pop("00001/first/sprite.png"))) for files in read]
    np.testing.assert_array_equal(*pictures)
    configs = [files.pop("projector_config.pbtxt").decode().replace(" ", "").split() for files in read]
    assert sorted(configs[0]) == sorted(configs[1])  # fields have no order
    assert read[0] == read[1]
    assert len(read[0]) == 4


def test_a_graph_has_the_operators_below_the_modules_that_ran_them(tmp_path):
    model = rg.nn.Sequential(rg.nn.Linear(3, 4), rg.nn.Sequential(rg.nn.ReLU()))
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, rg.ones(2, 3))
    graph_pb2 = pytest.importorskip("tensorboard.compat.proto.graph_pb2")
    graph = graph_pb2.GraphDef.FromString(
        accumulator.EventAccumulator(str(tmp_path)).Reload()._graph  # `Graph` needs the class of TensorFlow or its stub
    )
    assert {node.name: node.op for node in graph.node} == {
        "Sequential/input_1": "Input",
        "Sequential/0/weight": "Parameter",
        "Sequential/0/bias": "Parameter",
        "Sequential/0/linear": "linear",
        "Sequential/1/0/relu": "relu",
        "Sequential/output": "Output",
    }
    (linear,) = [node for node in graph.node if node.op == "linear"]
    assert list(linear.input) == ["Sequential/input_1", "Sequential/0/weight", "Sequential/0/bias"]
    (shape,) = linear.attr["_output_shapes"].list.shape
    assert [dim.size for dim in shape.dim] == [2, 4]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "uint8", "bool", "complex64"])
def test_tensors_are_read_with_all_elements(dtype, tmp_path):
    tensor_util = pytest.importorskip("tensorboard.util.tensor_util")
    x = rg.arange(6).reshape(2, 3).to(dtype)
    with SummaryWriter(tmp_path) as writer:
        writer.add_tensor("x", x, 3)
    read = accumulator.EventAccumulator(str(tmp_path)).Reload()
    (event,) = read.Tensors("x")
    found = tensor_util.make_ndarray(event.tensor_proto)
    assert (event.step, found.dtype, found.tolist()) == (3, x.dtype, x.tolist())
    assert read.summary_metadata["x"].plugin_data.plugin_name == "tensor"


def test_histograms_have_the_automatic_bins_of_pytorch(tmp_path):
    writers = pytest.importorskip("torch.utils.tensorboard").SummaryWriter, SummaryWriter
    x, found = np.linspace(-3, 2, 500) ** 3, []
    for kind in writers:
        with kind(str(tmp_path / kind.__module__)) as writer:
            writer.add_histogram("auto", x, bins="auto")
            writer.add_histogram("tensorflow", x, bins="tensorflow")
        read = accumulator.EventAccumulator(str(tmp_path / kind.__module__)).Reload()
        values = [read.Histograms(tag)[0].histogram_value for tag in ("auto", "tensorflow")]
        found.append([(*value.bucket_limit, *value.bucket) for value in values])
    for mine, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(mine, theirs)
