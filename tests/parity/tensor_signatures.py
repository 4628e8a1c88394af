"""Arguments of PyTorch's methods of tensors that ours do not know by name, and why."""

REASONS = {
    "out_dtype": "a product in another dtype than that of its operands is for GPUs",
    "from": "a word of Python, which a call can name only through a dict; it is given by position",
    "other": "an overload of PyTorch's that its documentation does not have; copy_(src)",
    "layout": "the layout of a tensor changes by to_sparse and its relatives",
    "pin_memory": "there is no GPU that pinned memory would be for",
    "reverse": "an overload for lists of TorchScript",
    "tensor_indices_or_sections": "the name of one overload; indices and sections are known by names",
    "mat2": "the products of sparse tensors are functions; open",
}
DIFFERENCES = {
    "addmm": ["out_dtype"],
    "baddbmm": ["out_dtype"],
    "copy_": ["other"],
    "random_": ["from"],
    "smm": ["mat2"],
    "sort": ["reverse"],
    "tensor_split": ["tensor_indices_or_sections"],
    "to": ["layout", "pin_memory"],
    "uniform_": ["from"],
}

# Arguments that PyTorch takes by position, and ours does not, with the reason.
BY_KEYWORD = {
    "alpha": "the documentation has it by keyword only; the position is deprecated",
    "out_dtype": REASONS["out_dtype"],
    "separator": "an overload for text of TorchScript",
}
