"""Summaries for the plugins of TensorBoard: curves of precision, charts, meshes, sound, video, embeddings and graphs.

tensorboardX makes most of the messages; this module checks what it takes for granted.
"""

import io
import wave
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from retrograd.foundation.lazy_imports import lazy_module
from retrograd.nn.module import Module
from retrograd.ops.as_tensor import as_tensor
from retrograd.utils.event_files import import_tensorboardx

_MESH_KINDS = {"VERTEX": "vertices", "FACE": "faces", "COLOR": "colors"}  # in the order of TensorBoard's numbers from 1
_TENSORFLOW_DTYPES = {"float64": "DOUBLE", "float32": "FLOAT", "float16": "HALF"}  # others are named as here
Layout = Mapping[str, Mapping[str, Sequence[Any]]]


class PluginSummaries:
    """The methods of `SummaryWriter` for TensorBoard's plugins."""

    _folder: Path
    _add: Callable[..., None]
    _add_event: Callable[..., None]

    # ------------------------------------------------------------------------------------------------- curves

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add the precision and recall of predictions at thresholds from 0 to 1, at most 127 of them.

        labels: whether each example is positive, bool or 0 and 1.  predictions: probabilities of that, of the same
        shape.  weights: of the examples.  Raises ValueError for other shapes, and for predictions that are not from 0
        to 1.
        """
        labels, predictions = _array(labels), _array(predictions)
        weights = None if weights is None else _array(weights)
        shapes = {x.shape for x in (labels, predictions, weights) if x is not None}
        if len(shapes) > 1:
            raise ValueError(f"add_pr_curve: labels, predictions and weights of {tag!r} differ in shape: {shapes}")
        if not ((predictions >= 0) & (predictions <= 1)).all():
            raise ValueError(f"add_pr_curve: the predictions of {tag!r} must be probabilities, from 0 to 1")
        message = import_tensorboardx().summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._add_event(global_step, walltime, summary=message)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a curve of precision and recall that is known already: six vectors with a number for each threshold."""
        given = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        rows = [_array(row) for row in (*given, precision, recall)]
        if {row.shape for row in rows} != {(num_thresholds,)}:
            raise ValueError(f"add_pr_curve_raw: the vectors of {tag!r} must have {num_thresholds} numbers each")
        message = import_tensorboardx().summary.pr_curve_raw(tag, *rows, num_thresholds, weights)
        self._add_event(global_step, walltime, summary=message)

    # ------------------------------------------------------------------------------------------------- charts

    def add_custom_scalars(self, layout: Layout) -> None:
        """Arrange curves in charts: {category: {chart: ["Multiline", tags]}}, once for a run.

        A chart of the kind "Margin" has three tags: a value with its lower and its upper bound. Raises ValueError for
        other kinds.
        """
        for chart, (kind, tags) in ((name, content) for charts in layout.values() for name, content in charts.items()):
            if kind not in ("Multiline", "Margin") or (kind == "Margin" and len(tags) != 3):
                raise ValueError(
                    f'add_custom_scalars: chart {chart!r} must be ["Multiline", tags] or ["Margin", [value, lower, '
                    f"upper]], got {[kind, tags]}"
                )
        self._add_event(None, None, summary=import_tensorboardx().summary.custom_scalars(layout))

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show several curves in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show a curve with its margin: three tags, of the value, its lower and its upper bound."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    # ------------------------------------------------------------------------------------------------- media

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Add all elements of a tensor; ValueError for a dtype that TensorBoard lacks."""
        elements = as_tensor(tensor).detach().contiguous()
        name = str(elements.dtype)
        kind = f"DT_{_TENSORFLOW_DTYPES.get(name, name.upper())}"
        known = import_tensorboardx().proto.types_pb2.DataType.keys()
        if kind not in known:
            raise ValueError(f"add_tensor: {tag!r} has the unsupported tensor dtype {name}")
        sizes = [{"size": size} for size in elements.shape]
        content = {"dtype": kind, "tensor_shape": {"dim": sizes}, "tensor_content": elements.numpy().tobytes()}
        plugin = {"plugin_data": {"plugin_name": "tensor"}}
        self._add(tag, global_step, walltime, tensor=content, metadata=plugin)

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Raise NotImplementedError: `add_graph` shows modules, without a file of ONNX."""
        raise NotImplementedError(
            "add_onnx_graph: files of ONNX are not read; writer.add_graph(module, inputs) shows modules"
        )

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add point clouds or meshes: vertices (batch, points, 3), colors of the same shape, uint8.

        faces (batch, triangles, 3): the indices of each triangle's corners.  config_dict: the settings of three.js for
        camera, lights and material.  Raises ValueError for other shapes.
        """
        given = {"vertices": vertices, "colors": colors, "faces": faces}
        arrays = {name: None if x is None else _array(x) for name, x in given.items()}
        used = {name: x for name, x in arrays.items() if x is not None}
        for name, x in used.items():
            if x.ndim != 3 or x.shape[-1] != 3:
                raise ValueError(f"add_mesh: {name} of {tag!r} must have shape (batch, number, 3), got {x.shape}")
        message = import_tensorboardx().summary.mesh(tag, *arrays.values(), config_dict)
        kinds = [kind for kind, name in _MESH_KINDS.items() if name in used]
        mask = sum(1 << 1 + list(_MESH_KINDS).index(kind) for kind in kinds)
        for value, kind in zip(message.value, kinds, strict=True):
            value.tag = f"{tag}_{kind}"  # the name that TensorBoard's own summaries have
            value.metadata.plugin_data.content += bytes([7 << 3, mask])  # `components`, not in tensorboardX
        self._add_event(global_step, walltime, summary=message)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Add a sound of one channel: numbers from -1 to 1, others are clipped; sample_rate: per second."""
        samples = as_tensor(snd_tensor).detach().to("float64").reshape(-1).clamp(-1, 1)
        file = io.BytesIO()
        with wave.open(file, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(sample_rate)
            out.writeframes((samples * 32767).round().to("int16").numpy().astype("<i2").tobytes())
        sound = {
            "sample_rate": sample_rate, "num_channels": 1, "length_frames": samples.numel(),
            "encoded_audio_string": file.getvalue(), "content_type": "audio/wav",
        }  # fmt: skip
        self._add(tag, global_step, walltime, audio=sound)

    # ------------------------------------------------------------------------------------------------- embeddings

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Add vectors for TensorBoard's projector, as files in the folder of the run.

        mat: (vectors, features).  metadata: a label of each vector, or a sequence of them, which metadata_header names.
        label_img: an image of each vector, (vectors, channels, size, size), floats from 0 to 1.  Raises ValueError for
        other numbers of labels and images before a file is written.
        """
        mat = _array(mat)
        images = None if label_img is None else _array(label_img)
        if mat.ndim != 2:
            raise ValueError(f"add_embedding: mat must have shape (vectors, features), got {mat.shape}")
        for name, labels in (("metadata", metadata), ("label_img", images)):
            if labels is not None and len(labels) != len(mat):
                raise ValueError(f"add_embedding: there are {len(labels)} entries of {name} for {len(mat)} vectors")
        if images is not None and (images.ndim != 4 or images.shape[2] != images.shape[3]):
            raise ValueError(
                f"add_embedding: label_img must have shape (vectors, channels, size, size): {images.shape}"
            )
        if metadata_header and (metadata is None or any(len(row) != len(metadata_header) for row in metadata)):
            raise ValueError(f"add_embedding: each entry of metadata must have the columns {list(metadata_header)}")
        step, files = global_step or 0, import_tensorboardx().embedding
        below = f"{step:05}/{quote(tag, safe='')}"
        folder = str(self._folder / below)
        Path(folder).mkdir(parents=True, exist_ok=True)
        if metadata is not None:
            files.make_tsv(list(metadata), folder, list(metadata_header or ()))
        if images is not None:
            files.make_sprite(images, folder)
        files.make_mat(mat, folder)
        files.append_pbtxt(metadata, images, str(self._folder), below, step, tag)

    # ------------------------------------------------------------------------------------------------- graphs

    def add_graph(
        self, model: Module, input_to_model: Any = (), verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Add the graph of a module's operators on an example, grouped by submodules.

        input_to_model: a tensor, or a tuple of the arguments.  verbose: print the graph.  use_strict_trace has no
        effect.
        """
        inputs = input_to_model if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
        graph = lazy_module("retrograd.fx").trace(model, *inputs).graph
        if verbose:
            print(graph)
        scoped = {node: _scoped_name(type(model).__name__, node) for node in graph.nodes}
        nodes = [
            {"name": name, "op": _operation(node), "input": [scoped[i] for i in node.all_input_nodes]} | _shape(node)
            for node, name in scoped.items()
        ]
        message = import_tensorboardx().proto.graph_pb2.GraphDef(node=nodes, versions={"producer": 22})
        self._add_event(None, None, graph_def=message.SerializeToString())


def _array(values: Any) -> Any:
    return as_tensor(values).detach().numpy()


def _scoped_name(root: str, node: Any) -> str:
    """Return a node's name below those of the modules that it ran in: "Net/layers/0/linear"."""
    if node.op == "get_attr":
        return f"{root}/{node.target.replace('.', '/')}"
    path = next(reversed(node.meta.get("nn_module_stack", {"": None})))
    return "/".join([root, *filter(None, path.split(".")), node.name])


def _operation(node: Any) -> str:
    kinds = {"placeholder": "Input", "get_attr": "Parameter", "output": "Output"}
    return kinds.get(node.op) or getattr(node.target, "name", None) or str(node.target)


def _shape(node: Any) -> dict[str, Any]:
    """Return the attributes with which TensorBoard shows the sizes of a result."""
    shape = getattr(node.meta.get("val"), "shape", None)
    if shape is None:
        return {}
    dims = [{"size": int(size)} for size in shape]
    return {"attr": {"_output_shapes": {"list": {"shape": [{"dim": dims}]}}}}
