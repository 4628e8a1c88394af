"""Texts of actions, as PyTorch writes them."""

ACTION_TEXTS = (
    "2F0",
    "0B3",
    "1I2",
    "1W2",
    "3SEND_F1",
    "0RECV_B2",
    "1UNSHARD",
    "2REDUCE_GRAD",
    "(0F1;1B0)OVERLAP_F_B",
)
