"""TensorBoard reads the event files."""

import io

import matplotlib.image
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
