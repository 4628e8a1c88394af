"""PyTorch's calls and known differences of losses with margins."""

NO_COUNTERPART = {
    "ctc_loss": "PyTorch's gradient has that of log_softmax in it, and cannot be differentiated again",
    "multi_margin_loss": "PyTorch's cannot be differentiated twice",
    "multilabel_margin_loss": "PyTorch's cannot be differentiated twice",
}
