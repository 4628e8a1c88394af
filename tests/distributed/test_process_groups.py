"""PyTorch's names for the ranks of a script."""

import datetime

import pytest

import retrograd as rg
from retrograd import distributed as dist


@pytest.fixture(autouse=True)
def no_group_before_and_after():
    assert not dist.is_initialized()
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_a_script_that_no_launcher_has_started_is_one_rank():
    dist.init_process_group(backend="gloo", rank=0, world_size=1, timeout=datetime.timedelta(seconds=5))
    assert dist.is_available()
    assert dist.is_initialized()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()


@pytest.mark.parametrize("ask", [dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier])
def test_without_a_group_the_error_is_pytorchs(ask):
    with pytest.raises(ValueError, match="Default process group has not been initialized, please make sure to call"):
        ask()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "nccl"}, "there is no backend 'nccl'; there are cpu:gloo, fake, gloo, mpi, ray, threads"),
        ({"world_size": 4}, "world_size is 4, and the launcher's is 1; start the script with `retrograd run -n 4"),
        ({"rank": 1}, "rank is 1, and the launcher's is 0"),
    ],
)
def test_a_group_that_the_launcher_has_not_started_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        dist.init_process_group(**options)
    assert not dist.is_initialized()


def test_a_second_group_is_refused():
    dist.init_process_group()
    with pytest.raises(RuntimeError, match="default process group twice"):
        dist.init_process_group()


def test_other_names_of_pytorchs_are_refused_with_what_there_is():
    with pytest.raises(AttributeError, match=r"retrograd.distributed has no 'rpc': it has DeviceMesh, GroupMember"):
        _ = dist.rpc


def test_pipelining_has_its_name_of_pytorch():
    from retrograd.distributed import pipelining

    assert pipelining.ScheduleGPipe is rg.pipelining.ScheduleGPipe
    assert pipelining._Action is rg.pipelining._Action
