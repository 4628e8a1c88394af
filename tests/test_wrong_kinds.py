"""Arguments of a wrong kind are refused by a TypeError that names the function or the argument, and nothing changes."""

import inspect

import pytest
from tests.argument_walk import run_walk

import retrograd as rg
from retrograd import nn
from retrograd.optim.swa_utils import AveragedModel

WRONG = {"None": None, "int": 3, "str": "a", "list": [], "dict": {}, "object": object()}
INIT = [name for name in vars(nn.init) if name[0] != "_" and name.endswith("_")]
IN_PLACE = [
    name
    for name in dir(rg.Tensor)
    if name.endswith("_") and name[0] != "_" and hasattr(getattr(rg.Tensor, name), "writes")
]


def refusal(call):
    with pytest.raises(TypeError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("name", INIT)
def test_initializers_name_what_is_no_tensor(name):
    function = getattr(nn.init, name)
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    for wrong in WRONG.values():
        said = refusal(lambda w=wrong: function(w, *[1.0] * (len(needed) - 1)))
        assert "tensor must be a Tensor, got" in said


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_functions_name_what_is_no_tensor(name):
    for wrong in WRONG.values():
        assert (
            refusal(lambda w=wrong: getattr(rg.Tensor, name)(w)).partition(", got")[0].endswith("_: expected a Tensor")
        )


def gradients():
    p = rg.ones(2, requires_grad=True)
    p.grad = 9 * rg.ones(2)
    return p


# Arguments of public functions, without `rg.`, for which a wrong kind is accepted or has another error; by reason.
UNDECIDED = {
    "arguments of another function, which names them": (
        "func.vjp(primals) fx.trace(args) nn.utils.skip_init(args) overrides.handle_torch_function(args) "
        "hips.core.make_vjp(x) hub.load(args) "
        "overrides.handle_torch_function(public_api) overrides.handle_torch_function(relevant_args) "
        "pipelining.Pipe.from_tracing(example_args) pipelining.Pipeline.materialize(args) "
        "pipelining.PipelineStage.forward_one_chunk(args) pipelining.plan(example_args) higher_order.map(args) "
        "higher_order.while_loop(carried_inputs) utils.checkpoint.checkpoint(args) "
        "utils.checkpoint.checkpoint_sequential(input)"
    ),
    "PyTorch's words": (
        "autograd.gradgradcheck(inputs) higher_order.associative_scan(combine_fn) "
        "higher_order.associative_scan(dim) higher_order.cond(false_fn) higher_order.cond(true_fn) "
        "higher_order.scan(combine_fn) nn.functional.scaled_mm(scale_recipe_a) "
        "nn.functional.scaled_mm(scale_recipe_b) pipelining.stage_backward(output_grads) "
        "pipelining.stage_backward(stage_output) pipelining.stage_backward_input(output_grads) "
        "pipelining.stage_backward_input(stage_outputs_or_loss) pipelining.stage_backward_input(weights) "
        "tensor(data)"
    ),
    "an AssertionError is the answer": (
        "hips.test_util.check_equivalent(x) hips.test_util.check_equivalent(y) "
        "testing.assert_allclose(actual) testing.assert_allclose(expected) testing.assert_close(actual) "
        "testing.assert_close(expected)"
    ),
    "stored without a look, and used later": (
        "autograd.graph.disable_saved_tensors_hooks(error_message) autograd.graph.saved_tensors_hooks(pack_hook) "
        "autograd.graph.saved_tensors_hooks(unpack_hook) distributed.GradBucket(buffer) "
        "distributed.GradBucket(index) distributed.GradBucket(is_last) distributed.GradBucket(parameters) "
        "distributed.PrefixStore(prefix) distributed.PrefixStore(store) export.ExportGraphSignature(input_specs) "
        "export.ExportGraphSignature(output_specs) fx.replace_pattern(replacement) "
        "fx.passes.infra.partitioner.CapabilityBasedPartitioner(operator_support) library.Library(ns) "
        "library.custom_op(name) library.register_kernel(device_types) nn.DataParallel(module) "
        "nn.TransformerDecoder(decoder_layer) nn.TransformerEncoder(encoder_layer) "
        "optim.lr_scheduler.SequentialLR(optimizer) optim.swap_in_optimizer_params_and_state(optimizer) "
        "optim.swap_in_optimizer_params_and_state(swapin_optim_state) "
        "optim.swap_in_optimizer_params_and_state(swapin_parameters) pipelining.Action(kind) "
        "pipelining.Action(micro_batch) pipelining.Action(stage) pipelining.Event(action) pipelining.Event(end) "
        "pipelining.Event(rank) pipelining.Event(start) pipelining.PipelineStage.forward_one_chunk(fwd_chunk_id) "
        "pipelining.Summary(busy) pipelining.Summary(end) pipelining.Summary(start) "
        "pipelining.TrivialLossWrapper(module) pipelining.split_into_equal_size(stages) utils.blas_threads(most) "
        "utils.data.BatchSampler(sampler) utils.data.ChainDataset(datasets) utils.data.Subset(indices) "
        "utils.progress(description) utils.progress(work)"
    ),
    "an empty dict, text or list is an empty sequence": (
        "autograd.backward(tensors) autograd.graph.register_multi_grad_hook(tensors) broadcast_shapes(shapes) "
        "distributions.TransformedDistribution(transforms) distributions.Wishart(df) empty(shape) "
        "func.rearrange(tensor) index_put(indices) interop.safetensors.load_slices(ranges) "
        "library.CustomOpDef.impl(device_types) library.opcheck(args) "
        "nn.AvgPool1d(kernel_size) nn.AvgPool2d(kernel_size) nn.AvgPool3d(kernel_size) nn.Fold(kernel_size) "
        "nn.Fold(output_size) nn.FractionalMaxPool2d(kernel_size) nn.FractionalMaxPool3d(kernel_size) "
        "nn.LPPool1d(kernel_size) nn.LPPool2d(kernel_size) nn.LPPool3d(kernel_size) nn.MaxPool1d(kernel_size) "
        "nn.MaxPool2d(kernel_size) nn.MaxPool3d(kernel_size) nn.MaxUnpool1d(kernel_size) "
        "nn.MaxUnpool2d(kernel_size) nn.MaxUnpool3d(kernel_size) "
        "nn.Unfold(kernel_size) nn.attention.sdpa_kernel(backends) nn.factory_kwargs(kwargs) "
        "nn.parallel.gather(outputs) nn.utils.prune.global_unstructured(parameters) "
        "nn.utils.rnn.inverse_permutation(order) nn.utils.rnn.step_sizes(lengths) ones(size) "
        "optim.lr_scheduler.CyclicLR(base_lr) optim.lr_scheduler.CyclicLR(max_lr) "
        "optim.lr_scheduler.OneCycleLR(max_lr) optim.swa_utils.SWALR(swa_lr) pipelining.Pipeline.stream(requests) "
        "pipelining.TensorChunkSpec.from_tuple(chunk_dims) pipelining.format_grid(plan) "
        "pipelining.merge_chunks(chunks) pipelining.split_args_kwargs_into_chunks(kwargs) "
        "pipelining.schedules.lowering.buffer_depth(schedule) pipelining.schedules.lowering.validate(edges) "
        "pipelining.with_offload(schedule) pipelining.with_recomputation(schedule) testing.make_tensor(shape) "
        "utils.benchmark.Compare(results) utils.data.ConcatDataset(datasets)"
    ),
    "a pytree or an array of any kind, whose leaves are converted": (
        "func.Sparsity(pattern) implicit.argmin(x0) implicit.constrained(x0) implicit.fixed_point(x0) "
        "hips.misc.optimizers.sgd(x0) "
        "implicit.root(x0) nn.parallel.data_parallel(inputs) ode.dopri5(t) ode.dopri5(y0) ode.euler(t) "
        "ode.euler(y0) ode.euler_maruyama(t) ode.euler_maruyama(y0) ode.kvaerno5(t) ode.kvaerno5(y0)"
    ),
    "called for each value of a graph, without a wrapper": (
        "TypedStorage(args) autograd._unsafe_preserve_version_counter(tensors) fx.Proxy(node) "
        "fx.map_aggregate(fn) sym_sum(args) utils.data.default_collate(batch) utils.data.nested_collate(batch)"
    ),
    "annotated by names that only type checkers import": (
        "autograd.graph.draw(outputs) distributed.ProcessGroup(transport) pipelining.write_html(timelines) "
        "pipelining.write_perfetto(timelines)"
    ),
    "the words say what is wanted, without a name": (
        "distributions.utils.broadcast_all(values) "
        "frombuffer(buffer) frombuffer(dtype) nn.functional.multi_head_attention_forward(dropout_p) "
        "interop.array_api.result_type(arrays_and_dtypes) "
        "nn.parallel.gather(target_device) nn.utils.convert_conv2d_weight_memory_format(memory_format) "
        "nn.utils.prune.ln_structured(n) pipelining.PipelineStage(device) utils.data.ArrowDataset(table)"
    ),
    "only asked whether it is true, as in PyTorch": "nn.functional.multi_head_attention_forward(add_zero_attn)",
    "SciPy's or NumPy's words about an empty list": (
        "scipy.integrate.cumulative_simpson(y) scipy.integrate.cumulative_trapezoid(y) scipy.integrate.romb(y) "
        "scipy.integrate.simpson(y) scipy.linalg.cossin(X) scipy.linalg.hessenberg(a) scipy.linalg.schur(a) "
        "scipy.ndimage.correlate1d(input) scipy.ndimage.gaussian_filter1d(input) "
        "scipy.ndimage.map_coordinates(coordinates) scipy.signal.istft(Zxx)"
    ),
    "a number is a start too, and the function that is called does not fit it": (
        "scipy.optimize.minimize(x0) scipy.optimize.newton(x0) scipy.optimize.root(x0)"
    ),
    "SciPy takes None for NaN": "scipy.ndimage.spline_filter(input)",
}


p, layer = gradients(), nn.Linear(2, 2)
REFUSED = {
    "AveragedModel: model must be a Module": AveragedModel,
    "clip_grad_norm_: expected a Tensor": lambda wrong: nn.utils.clip_grad_norm_([p, wrong], 1.0),
    "clip_grad_value_: expected a Tensor": lambda wrong: nn.utils.clip_grad_value_([p, wrong], 1.0),
    "apply: fn must be a function": layer.apply,
    "get_device: expected a Tensor": rg.get_device,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("words", REFUSED)
def test_arguments_of_a_wrong_kind_are_named(words, wrong):
    assert refusal(lambda: REFUSED[words](WRONG[wrong])).startswith(words)
    assert p.grad.tolist() == [9.0, 9.0]


@pytest.mark.parametrize("wrong", [None, 3, "a", object()])
def test_what_is_no_tensor_has_no_gradients(wrong):
    w = rg.ones(2, requires_grad=True)
    for call in (
        lambda: rg.autograd.grad(wrong, w),
        lambda: rg.autograd.grad(w.sum(), wrong),
        lambda: rg.autograd.backward(wrong),
        lambda: nn.utils.clip_grad_norm_(wrong, 1.0),
    ):
        assert "expected a Tensor" in refusal(call)


def test_public_functions_name_the_argument_of_a_wrong_kind(tmp_path):
    unclear = {}
    for path, argument, kind, result in run_walk(tmp_path):
        unclear.setdefault(f"{path.removeprefix('rg.')}({argument})", f"{kind}: {result}")
    undecided = {name for names in UNDECIDED.values() for name in names.split()}
    assert {name: result for name, result in unclear.items() if name not in undecided} == {}
    assert undecided - unclear.keys() == set(), "these are decided now"
