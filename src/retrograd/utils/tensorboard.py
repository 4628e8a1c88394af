"""`SummaryWriter`: scalars, histograms, images and texts of a training for TensorBoard, without TensorFlow."""

import io
import math
import os
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from retrograd.core import Tensor, registry
from retrograd.ops.as_tensor import as_tensor
from retrograd.utils.event_files import EventFile, import_tensorboardx
from retrograd.utils.hparams import PLUGIN, hparams_summaries
from retrograd.utils.tensorboard_plugins import PluginSummaries

__path__: list[str] = []  # this module is a package too: `module_aliases.py` has its modules

_SESSION_STARTS = 1  # a value of TensorBoard's message `SessionLog`


class SummaryWriter(PluginSummaries):
    """Writes files for TensorBoard: `tensorboard --logdir runs`. It needs tensorboardX (`retrograd[tensorboard]`).

    log_dir: the folder of this run, by default "runs/<date and time>"; TensorBoard compares the runs of a folder.
    comment: added to that name. purge_step: TensorBoard hides the points of earlier files of the folder from this step
    on, after a crash. max_queue, flush_secs: after this number of events or seconds, buffered events are written with
    the next addition. A context manager, which closes the file at its end.

    >>> import tempfile, retrograd as rg
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     for step, loss in enumerate([0.5, 0.25]):
    ...         writer.add_scalar("loss", loss, step)
    ...     writer.add_histogram("weights", rg.randn(100), 1)
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        self._folder = Path(f"runs/{now}{comment}" if log_dir is None else log_dir)
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._queued = 0
        self._suffix = filename_suffix
        self._flushed = time.monotonic()
        self._file = EventFile(self._folder, filename_suffix)
        self._sub_writers: dict[str, SummaryWriter] = {}
        if purge_step is not None:
            self._add_event(purge_step, None, session_log={"status": _SESSION_STARTS})

    @property
    def log_dir(self) -> str:
        """Return the folder of the event file."""
        return str(self._folder)

    def get_logdir(self) -> str:
        """Return the folder of the event file."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Add a number as a point of the curve `tag`. Raises ValueError unless it is a single number.

        new_style and double_precision, forms in which PyTorch can store the number, have no effect.
        """
        value = as_tensor(scalar_value, dtype="float64")
        if value.numel() != 1:
            raise ValueError(f"add_scalar: {tag!r} must be one number, got shape {value.shape}")
        self._add(tag, global_step, walltime, simple_value=value.item())

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add numbers by name as points of several curves in one diagram: each is a separate run within this one."""
        for name, value in tag_scalar_dict.items():
            run = f"{main_tag.replace('/', '_')}_{name}"
            if run not in self._sub_writers:
                self._sub_writers[run] = SummaryWriter(
                    self._folder / run,
                    max_queue=self._max_queue,
                    flush_secs=self._flush_secs,
                    filename_suffix=self._suffix,
                )
            self._sub_writers[run].add_scalar(main_tag, value, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: int | str | Sequence[float] = 30,
        walltime: float | None = None,
    ) -> None:
        """Add a histogram: the count of values in each of `bins` equal bins, or between given edges.

        bins: "auto" takes as many as NumPy does for floats; "tensorflow", PyTorch's default, has edges of both signs
        that grow by a tenth. Empty bins at both ends are left out. Raises ValueError for no values and for those that
        are not finite.
        """
        numbers = _flatten_finite("add_histogram", tag, values)
        low, high = numbers.min().item(), numbers.max().item()
        if bins == "auto":
            bins = _count_bins(numbers, high - low)
        if isinstance(bins, int):
            width = (high - low) / bins or 1.0
            edges = [low + i * width for i in range(bins)] + [max(high, low + width * bins)]
        else:
            edges = _tensorflow_edges() if bins == "tensorflow" else [float(edge) for edge in bins]
        counts, _ = registry["histogram"](numbers, as_tensor(edges, dtype=numbers.dtype))
        moments = numbers.sum().item(), (numbers * numbers).sum().item()
        full = [i for i, count in enumerate(counts.tolist()) if count] or [0, len(counts) - 1]
        buckets = edges[full[0] : full[-1] + 2], [0.0, *counts[full[0] : full[-1] + 1].tolist()]
        self.add_histogram_raw(tag, low, high, numbers.numel(), *moments, *buckets, global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add a histogram that is known already: the right edge and the count of each bin, and moments of values."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"add_histogram_raw: {tag!r} has {len(bucket_limits)} limits for {len(bucket_counts)} counts"
            )
        summary = {
            "min": min, "max": max, "num": num, "sum": sum, "sum_squares": sum_squares,
            "bucket_limit": [float(x) for x in bucket_limits], "bucket": [float(x) for x in bucket_counts],
        }  # fmt: skip
        self._add(tag, global_step, walltime, histo=summary)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add a text in Markdown."""
        text = {"dtype": "DT_STRING", "tensor_shape": {"dim": [{"size": 1}]}, "string_val": [text_string.encode()]}
        self._add(f"{tag}/text_summary", global_step, walltime, tensor=text, metadata=_plugin_metadata("text"))

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Add an image: a tensor with 1 (grey), 3 (red, green, blue) or 4 channels, floats from 0 to 1 or uint8.

        dataformats: the order of channels, height and width, "CHW", "HWC" or "HW". Raises ValueError for other shapes.
        """
        pixels = _to_pixels(tag, as_tensor(img_tensor), dataformats)
        self._add(tag, global_step, walltime, image=_image_summary(_encode_png(pixels)))

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Sequence[str] | None = None,
    ) -> None:
        """Add an image with red frames: boxes (n, 4) of left, top, right and bottom in pixels, with a label each.

        rescale: the factor of the image's size. Otherwise as `add_image`.
        """
        boxes = as_tensor(box_tensor).detach().tolist()
        if labels is not None and len(labels) != len(boxes):
            raise ValueError(f"add_image_with_boxes: {tag!r} has {len(labels)} labels for {len(boxes)} boxes")
        picture = _picture(_to_pixels(tag, as_tensor(img_tensor), dataformats)).convert("RGB")
        _draw_boxes(picture, boxes, [""] * len(boxes) if labels is None else labels)
        file = io.BytesIO()
        picture.resize([int(side * rescale) for side in picture.size], _import_pillow().LANCZOS).save(file, "png")
        self._add(tag, global_step, walltime, image=_image_summary(file))

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Add images as one, with up to 8 of them in a row, and black ones at the end of the last row.

        dataformats: the order of the dimensions, "NCHW" or "NHWC".  Otherwise as `add_image`.
        """
        images = as_tensor(img_tensor).detach()
        if dataformats not in ("NCHW", "NHWC") or images.ndim != 4:
            raise ValueError(
                f"add_images: {tag!r} has shape {images.shape}, which does not go with dataformats={dataformats!r}; it "
                f"is NCHW or NHWC"
            )
        grid = _join_images(images if dataformats == "NHWC" else images.permute(0, 2, 3, 1))
        self.add_image(tag, grid, global_step, walltime, "HWC")

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Add videos side by side as one moving picture: (videos, frames, channels, height, width), as `add_image`.

        fps: frames per second.
        """
        videos = as_tensor(vid_tensor).detach()
        if videos.ndim != 5 or not videos.numel():
            raise ValueError(f"add_video: {tag!r} must be (videos, frames, channels, height, width): {videos.shape}")
        frames = [
            _picture(_to_pixels(tag, _join_images(frame.permute(0, 2, 3, 1)), "HWC")) for frame in videos.unbind(1)
        ]
        file = io.BytesIO()
        frames[0].save(file, "gif", save_all=True, append_images=frames[1:], duration=1000 / fps, loop=0)
        self._add(tag, global_step, walltime, image=_image_summary(file))

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Add a matplotlib figure as an image, in its own resolution; `close` closes it."""
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi="figure")
        self._add(tag, global_step, walltime, image=_image_summary(file))
        if close:
            import matplotlib.pyplot

            matplotlib.pyplot.close(figure)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Add the hyperparameters and the metrics of a training, as a row of TensorBoard's table.

        hparam_dict: numbers, booleans and texts by name.  metric_dict: numbers by name, each also a point of that
        curve.
        hparam_domain_discrete: the possible values of a hyperparameter.  run_name: the subfolder of this run for
        them, by default the time.  Raises TypeError and ValueError for other values.
        """
        entries = list(hparams_summaries(hparam_dict, list(metric_dict), hparam_domain_discrete or {}))
        with SummaryWriter(self._folder / (run_name or str(time.time()))) as writer:
            for name, data in entries:
                writer._add(f"_hparams_/{name}", None, None, metadata=_plugin_metadata(PLUGIN, data))
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def flush(self) -> None:
        """Write all events."""
        for writer in (self, *self._sub_writers.values()):
            writer._file.flush()
        self._flushed, self._queued = time.monotonic(), 0

    def close(self) -> None:
        """Write all events, and close the files."""
        for writer in (self, *self._sub_writers.values()):
            writer._file.close()

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _add(self, tag: str, step: int | None, walltime: float | None, **fields: Any) -> None:
        """Add a summary with these fields of TensorBoard's message `Summary.Value`."""
        self._add_event(step, walltime, summary={"value": [{"tag": tag, **fields}]})

    def _add_event(self, step: int | None, walltime: float | None, **content: Any) -> None:
        """Add an event of a step, by default 0, at a time in seconds, by default now."""
        when = time.time() if walltime is None else walltime
        event = import_tensorboardx().proto.event_pb2.Event(wall_time=when, step=step or 0, **content)
        self._file.add(event.SerializeToString())
        self._queued += 1
        if self._queued >= self._max_queue or time.monotonic() - self._flushed >= self._flush_secs:
            self.flush()


def _plugin_metadata(name: str, content: bytes = b"") -> dict[str, Any]:
    """Return the metadata of a summary that a plugin of TensorBoard shows."""
    return {"plugin_data": {"plugin_name": name, "content": content}}


def _count_bins(numbers: Tensor, extent: float) -> int:
    """Return the number of bins by the smaller of the widths of Sturges and of Freedman and Diaconis."""
    n = numbers.numel()
    quarters = registry["quantile"](numbers, as_tensor([0.25, 0.75], dtype=numbers.dtype)).tolist()
    spread = 2 * (quarters[1] - quarters[0]) / n ** (1 / 3)
    width = min(w for w in (extent / (math.log2(n) + 1), spread or math.inf))
    return math.ceil(extent / width) if width else 1


def _tensorflow_edges() -> list[float]:
    edge, edges = 1e-12, []
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    return [-edge for edge in reversed(edges)] + [0.0] + edges


def _flatten_finite(name: str, tag: str, values: Any) -> Tensor:
    """Return finite values, as a vector of float64."""
    numbers = as_tensor(values).detach().to("float64").reshape(-1)
    if not numbers.numel():
        raise ValueError(f"{name}: {tag!r} has no numbers")
    num_nonfinite = numbers.numel() - int(numbers.isfinite().sum().item())
    if num_nonfinite:
        raise ValueError(f"{name}: {num_nonfinite} of {numbers.numel()} numbers of {tag!r} are not finite")
    return numbers


# ------------------------------------------------------------------------------------------------- pictures


def _to_pixels(tag: str, image: Tensor, dataformats: str) -> Tensor:
    """Return an image as bytes, of shape (height, width, channels)."""
    if dataformats not in ("CHW", "HWC", "HW") or image.ndim != len(dataformats):
        raise ValueError(
            f"add_image: {tag!r} has shape {image.shape}, which does not go with dataformats={dataformats!r}; it is "
            f"one of CHW, HWC, HW"
        )
    image = image.detach()
    if dataformats == "CHW":
        image = image.permute(1, 2, 0)
    elif dataformats == "HW":
        image = image.unsqueeze(-1)
    if image.shape[-1] not in (1, 3, 4):
        raise ValueError(f"add_image: {tag!r} must have 1, 3 or 4 channels, got {image.shape[-1]}")
    if image.dtype == "uint8":
        return image
    return (image.to("float64").clamp(0, 1) * 255).round().to("uint8")


def _join_images(images: Tensor) -> Tensor:
    """Return images of shape (images, height, width, channels) as one of (height, width, channels)."""
    count, height, width, channels = images.shape
    columns = min(count, IMAGES_PER_ROW)
    rows = -(-count // columns)
    missing = registry["zeros"]((rows * columns - count, height, width, channels), dtype=images.dtype)
    grid = registry["cat"]([images, missing]).reshape(rows, columns, height, width, channels)
    return grid.permute(0, 2, 1, 3, 4).reshape(rows * height, columns * width, channels)


IMAGES_PER_ROW = 8
MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's names of numbers of channels


def _picture(pixels: Tensor) -> Any:
    """Return pixels of shape (height, width, channels), uint8, as Pillow's image."""
    height, width, channels = pixels.shape
    return _import_pillow().frombytes(MODES[channels], (width, height), bytes(pixels.reshape(-1).tolist()))


def _draw_boxes(picture: Any, boxes: Sequence[Sequence[float]], labels: Sequence[str]) -> None:
    """Draw red frames with labels into Pillow's image."""
    from PIL import ImageDraw

    pen = ImageDraw.Draw(picture)
    for (left, top, right, bottom), label in zip(boxes, labels, strict=True):
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        pen.line(corners, width=2, fill="red")
        if label:
            pen.rectangle(pen.textbbox((left, top), label), fill="red")
            pen.text((left, top), label, fill="black")


def _encode_png(pixels: Tensor) -> io.BytesIO:
    """Encode pixels of shape (height, width, channels), uint8, as a PNG file."""
    file = io.BytesIO()
    _picture(pixels).save(file, "png")
    return file


def _image_summary(file: io.BytesIO) -> dict[str, Any]:
    """Return the fields of TensorBoard's image from a PNG file."""
    image = _import_pillow().open(file)
    channels = len(image.getbands())
    return {
        "height": image.height, "width": image.width, "colorspace": channels, "encoded_image_string": file.getvalue(),
    }  # fmt: skip


def _import_pillow() -> Any:
    """Return Pillow's module of images, imported at the first call; ImportError names the extra to install."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("images for TensorBoard need Pillow: pip install 'retrograd[tensorboard]'") from error
    return Image
