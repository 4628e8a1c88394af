"""The data loader: the same batches for any number of workers, errors with their index, and workers that end."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import retrograd as rg
from retrograd.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, get_worker_info


class Squares(Dataset):
    """A dataset of squares; some items raise."""

    def __init__(self, count, broken=None):
        self.count = count
        self.broken = broken

    def __getitem__(self, index):
        if index == self.broken:
            raise LookupError(f"no example {index}")
        return rg.tensor(index * index)

    def __len__(self):
        return self.count


class Shares(IterableDataset):
    """A dataset of which each worker yields its part."""

    def __iter__(self):
        info = get_worker_info()
        yield from range(0, 7) if info is None else range(info.id, 7, info.num_workers)


class Noise(Squares):
    """A dataset with noise."""

    def __getitem__(self, index):
        return rg.rand(())


class Deadly(Squares):
    """A dataset whose read kills the process."""

    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)


class Unreadable(Exception):  # noqa: N818
    """An error that can be pickled, but not unpickled."""

    def __init__(self, one, two):
        super().__init__("only this")


class Strange(Squares):
    def __getitem__(self, index):
        raise Unreadable(1, 2)


class Stuck(Squares):
    def __getitem__(self, index):
        threading.Event().wait()


def workers():
    """Return the running threads and processes of loaders."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("DataLoader")]
    return [*threads, *multiprocessing.active_children()]


def all_end():
    deadline = time.monotonic() + 60
    while workers() and time.monotonic() < deadline:
        time.sleep(0.001)
    return not workers()


def batches(dataset, **options):
    return [batch.tolist() for batch in DataLoader(dataset, **options)]


KINDS = [
    pytest.param({}, id="nobody"),
    pytest.param({"num_workers": 1}, id="a thread"),
    pytest.param({"num_workers": 3, "prefetch_factor": 1}, id="threads"),
    pytest.param({"num_workers": 2, "multiprocessing_context": "fork"}, id="processes"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_come_in_order_with_any_number_of_workers(kind):
    assert batches(Squares(5), batch_size=2, **kind) == [[0, 1], [4, 9], [16]]
    assert all_end()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_the_shuffled_order_depends_on_the_generator_alone(kind):
    options = {"batch_size": 4, "shuffle": True}
    loaders = [DataLoader(Squares(9), generator=rg.Generator(5), **options, **more) for more in ({}, kind)]
    epochs = [[[batch.tolist() for batch in loader] for _ in range(2)] for loader in loaders]
    assert epochs[0] == epochs[1]
    assert epochs[0][0] != epochs[0][1]


@pytest.mark.parametrize(
    ("options", "count"),
    [({"batch_size": 2}, 4), ({"batch_size": 2, "drop_last": True}, 3), ({"batch_size": None}, 7),
     ({"batch_sampler": [[0], [1, 2]]}, 2), ({"sampler": [3, 1], "batch_size": 2}, 1)],
)  # fmt: skip
def test_the_length_is_the_number_of_batches(options, count):
    loader = DataLoader(TensorDataset(rg.arange(7)), **options)
    assert len(loader) == len(list(loader)) == count


def test_tensors_are_read_a_batch_at_once_with_the_same_result():
    x, y = rg.randn(6, 2), np.arange(6, dtype=np.int8)
    dataset = Subset(TensorDataset(x, y), [5, 3, 1])
    one_by_one = DataLoader(dataset, 2, collate_fn=lambda examples: [rg.stack(list(p)) for p in zip(*examples)])  # noqa: B905
    for ours, expected in zip(DataLoader(dataset, 2), one_by_one, strict=True):
        assert [(part.dtype, part.tolist()) for part in ours] == [(p.dtype, p.tolist()) for p in expected]


def test_components_of_nested_tensors_come_in_nested_batches():
    ragged = rg.nested.nested_tensor([[1], [2, 3], [4, 5, 6]])
    (first, _) = DataLoader(TensorDataset(ragged), 2)
    assert first[0].is_nested
    assert first[0].tolist() == [[1], [2, 3]]


def test_a_dataset_that_can_load_batches_is_indexed_by_batches():
    class Many(Squares):
        def __getitems__(self, indices):
            return [index + 100 for index in indices]

    assert batches(Many(3), batch_size=2) == [[100, 101], [102]]


@pytest.mark.parametrize("source", [np.arange(3.0), rg.arange(3), [0, 1, 2]], ids=["array", "tensor", "list"])
def test_arrays_and_lists_are_datasets(source):
    assert batches(source, batch_size=2) == [[0, 1], [2]]


@pytest.mark.parametrize("kind", [{}, {"num_workers": 1}], ids=["nobody", "a thread"])
def test_iterables_are_read_once(kind):
    assert batches((i * i for i in range(3)), batch_size=2, **kind) == [[0, 1], [4]]


@pytest.mark.parametrize("kind", KINDS[2:])
def test_workers_share_an_iterable_and_take_turns(kind):
    got = [tuple(batch) for batch in batches(Shares(), batch_size=1, **kind)]
    assert sorted(got) == [(i,) for i in range(7)]
    assert got == [tuple(batch) for batch in batches(Shares(), batch_size=1, **kind)]
    assert got[: kind["num_workers"]] == [(i,) for i in range(kind["num_workers"])]


def test_an_iterable_leaves_out_what_fills_no_batch():
    assert batches(Shares(), batch_size=3, drop_last=True) == [[0, 1, 2], [3, 4, 5]]
    assert [int(item) for item in DataLoader(Shares(), None)] == list(range(7))


@pytest.mark.parametrize("kind", KINDS[2:])
def test_random_numbers_of_workers_come_from_the_generator(kind):
    def epoch(seed):
        return batches(Noise(6), batch_size=2, generator=rg.Generator(seed), **kind)

    before = rg.get_rng_state()
    first = epoch(1)
    assert first == epoch(1) != epoch(2)
    assert len({number for batch in first for number in batch}) == 6
    assert str(rg.get_rng_state()) == str(before)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_an_error_is_raised_in_order_with_its_traceback(kind):
    loader = iter(DataLoader(Squares(6, broken=3), 2, **kind))
    assert next(loader).tolist() == [0, 1]
    with pytest.raises(LookupError, match="no example 3") as caught:
        next(loader)
    assert "for the examples [2, 3]" in caught.value.__notes__[-1]
    shown = str(caught.value.__cause__) if "multiprocessing_context" in kind else str(caught.getrepr())
    assert "in __getitem__" in shown or "raise LookupError" in shown
    del caught
    assert next(loader).tolist() == [16, 25]
    assert list(loader) == []
    assert all_end()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_workers_end_with_an_iterator_that_is_left_after_an_error(kind):
    loader = iter(DataLoader(Squares(6, broken=1), 2, **kind))
    with pytest.raises(LookupError, match="no example 1"):
        next(loader)
    del loader
    assert all_end()


class SquaresAtOnce(Squares):
    """A dataset that reads batches; some raise."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Broken(IterableDataset):
    """An iterable whose fourth example raises."""

    def __iter__(self):
        yield from range(3)
        raise LookupError("no more")


def refuse_nines(examples):
    if any(example == 9 for example in examples):
        raise LookupError("a nine")
    return examples


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("dataset", "options", "source"),
    [
        (Squares(6, broken=3), {"batch_size": 2}, "the dataset for the example 3"),
        (Squares(6, broken=3), {"batch_size": None}, "the dataset for the example 3"),
        (
            Squares(6),
            {"batch_sampler": [[0], [4, 9, 5], [3]], "collate_fn": refuse_nines},
            "collate_fn for the examples [3]",
        ),
        (SquaresAtOnce(6, broken=3), {"batch_size": 2}, "the dataset for the examples [2, 3]"),
        (Squares(6), {"batch_size": 2, "collate_fn": refuse_nines}, "collate_fn for the examples [2, 3]"),
        (TensorDataset(rg.ones(2)), {"batch_sampler": [[0], [1, 2]]}, "the dataset for the examples [1, 2]"),
        (range(10), {"sampler": [3, 12]}, "the dataset for the example 12"),
        (Broken(), {"batch_size": 2}, "the dataset for the example 3"),
        (Broken(), {"batch_size": None}, "the dataset for the example 3"),
        (Shares(), {"batch_size": 7, "collate_fn": int}, "collate_fn for the examples [0, 1, 2"),
    ],
)
def test_an_error_says_for_which_examples_it_was_raised(dataset, options, source, kind):
    with pytest.raises((LookupError, TypeError)) as caught:
        list(DataLoader(dataset, **options, **kind))
    assert [note for note in caught.value.__notes__ if note.startswith(f"DataLoader: raised by {source}")]
    assert type(caught.value) in (LookupError, IndexError, TypeError)
    del caught
    assert all_end()


def test_the_end_of_an_iterable_and_an_interrupt_have_no_note():
    class Interrupted(IterableDataset):
        def __iter__(self):
            yield 0
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        list(DataLoader(Interrupted()))
    assert not hasattr(caught.value, "__notes__")
    assert len(list(DataLoader(Shares(), batch_size=2, drop_last=True))) == 3


def test_an_error_that_can_not_travel_is_reported_as_text():
    with pytest.raises(RuntimeError, match="Unreadable: only this"):
        list(DataLoader(Strange(1), num_workers=1, multiprocessing_context="fork"))


def test_a_batch_that_can_not_travel_is_an_error():
    with pytest.raises(Exception, match="local object") as caught:
        list(DataLoader(Squares(1), collate_fn=lambda b: lambda: b, num_workers=1, multiprocessing_context="fork"))
    assert any("can't send" in note for note in caught.value.__notes__)
    del caught  # it holds the iterator, and so the workers


def test_a_process_that_dies_is_an_error():
    with pytest.raises(RuntimeError, match=r"worker 0, process \d+, ended with exit code -9"):
        list(DataLoader(Deadly(1), num_workers=1, multiprocessing_context="fork"))
    assert all_end()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_the_first_thing_in_a_worker_is_its_start(kind):
    def start(worker):
        if worker == 0:
            raise ConnectionError("no such disk")

    with pytest.raises(ConnectionError, match="no such disk"):
        list(DataLoader(Squares(3), worker_init_fn=start, **kind))


@pytest.mark.parametrize("kind", KINDS[1:])
def test_workers_end_when_the_iteration_is_left(kind):
    for _ in DataLoader(TensorDataset(rg.zeros(50, 40_000)), 1, **kind):  # batches do not fit into a pipe
        break
    gc.collect()
    assert all_end()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_workers_stay_for_the_next_time_if_requested(kind):
    loader = DataLoader(Squares(6), 2, persistent_workers=True, **kind)
    for _ in loader:
        break
    kept = {worker.ident for worker in workers()}
    assert [batch.tolist() for batch in loader] == [[0, 1], [4, 9], [16, 25]]
    assert {worker.ident for worker in workers()} == kept != set()
    assert len(list(zip(loader, loader, strict=True))) == 3  # two at a time
    del loader
    gc.collect()
    assert all_end()


def test_waiting_has_an_end(monkeypatch):
    monkeypatch.setattr("retrograd.utils.data.worker_pool.STOP_TIMEOUT", 0.05)
    with pytest.raises(RuntimeError, match=r"within timeout=0\.01"):
        # any load: the worker never answers
        list(DataLoader(Stuck(1), num_workers=1, timeout=0.01, multiprocessing_context="fork"))
    assert all_end()


def test_processes_end_when_their_parent_is_killed(tmp_path):
    """Also while they read, and forked ones, which have copies of each other's connections."""
    (tmp_path / "program.py").write_text(PROGRAM)
    program = subprocess.Popen([sys.executable, tmp_path / "program.py"], stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() != program.stdout.readline()
    program.kill()
    assert program.stdout.read() == ""  # ends when all who could write to it have ended
    program.wait()
    program.stdout.close()


PROGRAM = """
import os, time
from retrograd.utils.data import DataLoader
class Slow:
    def __len__(self): return 9
    def __getitem__(self, index):
        print(os.getpid(), flush=True)
        time.sleep(60)
next(iter(DataLoader(Slow(), 1, num_workers=2, multiprocessing_context="fork")))
"""


class Interrupting:
    """A context of multiprocessing; an interrupt arrives when a process has been started."""

    def __init__(self, after):
        self.context, self.left = multiprocessing.get_context("fork"), after

    def __getattr__(self, name):
        return getattr(self.context, name)

    def Process(self, **options):
        process = self.context.Process(**options)
        self.left -= 1
        if self.left < 0:
            process.start = lambda: (type(process).start(process), interrupt())
        return process


def interrupt(*args):
    raise KeyboardInterrupt


@pytest.mark.parametrize("after", [0, 1, 2])
def test_processes_end_after_an_interrupt_of_their_start(after):
    with pytest.raises(KeyboardInterrupt) as caught:
        list(DataLoader(Squares(6), num_workers=3, multiprocessing_context=Interrupting(after)))
    assert all_end()
    del caught  # a notebook keeps it, too


def test_processes_end_after_an_interrupt_of_their_end(monkeypatch):
    monkeypatch.setattr("retrograd.utils.data.worker_pool.ProcessWorker._drain", interrupt)
    batches = iter(DataLoader(Large(), num_workers=3, multiprocessing_context="fork"))
    next(batches)
    with pytest.raises(KeyboardInterrupt) as caught:
        batches.close()
    assert all_end()
    del caught


class Large(Dataset):
    """Examples that fill the pipe of a process that nobody reads."""

    def __len__(self):
        return 100

    def __getitem__(self, index):
        return "x" * 2**20


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_classes_of_a_notebook_that_processes_do_not_find_are_named(method):
    """The standard input is no file either, which processes could run again."""
    code = f"""
from retrograd.utils.data import DataLoader, Dataset
class Squares(Dataset):
    def __len__(self): return 2
    def __getitem__(self, index): return index * index
def join(examples): return examples
list(DataLoader(Squares(), collate_fn=join, num_workers=1, multiprocessing_context={method!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "has to import Squares, join from __main__: define them in a module" in done.stderr.splitlines()[-1]


def test_pinned_memory_warns_and_gives_the_same_batches():
    with pytest.warns(UserWarning, match="pin_memory has no effect"):
        loader = DataLoader(Squares(5), batch_size=2, pin_memory=True)
    assert loader.pin_memory
    assert [batch.tolist() for batch in loader] == [batch.tolist() for batch in DataLoader(Squares(5), batch_size=2)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"batch_size": 0}, "batch_size should be a positive integer value or None, but got 0"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"sampler": [0], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler option is mutually exclusive with batch_size"),
        ({"num_workers": -1}, "num_workers=-1"),
        ({"timeout": -1}, "timeout=-1"),
        ({"prefetch_factor": 2}, "could only be specified in multiprocessing"),
        ({"persistent_workers": True}, "needs num_workers > 0"),
        ({"multiprocessing_context": "spoon"}, "'spoon'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, told):
    with pytest.raises(ValueError, match=told):
        DataLoader(Squares(1), **options)


@pytest.mark.parametrize(
    ("dataset", "options", "error"),
    [
        (Shares(), {"shuffle": True}, ValueError),
        (Shares(), {"sampler": [1]}, ValueError),
        (iter("ab"), {"num_workers": 2}, ValueError),
        (3, {}, TypeError),
    ],
)
def test_iterables_have_no_other_order_and_no_parts(dataset, options, error):
    with pytest.raises(error, match="DataLoader"):
        DataLoader(dataset, **options)


class Understated(IterableDataset):
    """Yields five examples, and says that it has three."""

    def __iter__(self):
        return iter(range(5))

    def __len__(self):
        return 3


@pytest.mark.parametrize("batch_size", [1, None])
def test_more_batches_than_the_stated_examples_warn_after_len(batch_size):
    loader = DataLoader(Understated(), batch_size=batch_size)
    assert sum(1 for _ in loader) == 5  # no warning: warnings are errors
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="was reported to be 3 .*, but [45] samples have been fetched") as told:
        list(loader)
    assert len(told) == 2
