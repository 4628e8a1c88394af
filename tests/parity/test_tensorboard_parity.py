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
