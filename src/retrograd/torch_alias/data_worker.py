"""The names of `torch.utils.data._utils.worker`."""

from retrograd.backend.philox import mixed_words
from retrograd.utils.data import get_worker_info as get_worker_info
from retrograd.utils.data.worker import WorkerInfo as WorkerInfo


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return four seeds for a worker, by the mixing of NumPy's SeedSequence.

    >>> _generate_state(5, 0)
    [161328693, 2841646664, 2763651139, 2546215728]
    """
    words: list[int] = mixed_words([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32], 4)
    return words
