"""PyTorch's names for the ranks of a script."""

import datetime

import pytest

import retrograd as rg
from retrograd import distributed as dist
from retrograd.distributed.init_methods import own_address


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
        ({"world_size": 4}, r"variable RANK expected, but not set; `retrograd run -n 4 --transport mpi SCRIPT` starts"),
        ({"world_size": 4, "rank": 0}, "environment variable MASTER_ADDR expected, but not set"),
        ({"world_size": 4, "rank": 4}, "rank is 4 and world_size 4; ranks go from 0 to world_size - 1"),
        ({"world_size": 4, "init_method": "tcp://127.0.0.1:0"}, "tcp:// rendezvous: rank parameter missing"),
        ({"init_method": "tcp://127.0.0.1?rank=0&world_size=2"}, "tcp:// rendezvous: port number missing"),
        ({"init_method": "tcp://127.0.0.1:1?rank=a&world_size=2"}, "rank must be a number, got 'a'"),
        ({"init_method": "http://127.0.0.1"}, r"No rendezvous handler for http://; .* one of env://, tcp://, file://"),
        ({"rank": 1}, "rank is 1, and the launcher's is 0"),
    ],
)
def test_a_group_that_the_launcher_has_not_started_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        dist.init_process_group(**options)
    assert not dist.is_initialized()


@pytest.mark.parametrize("address", ["192.0.2.1", None])  # of documentation, of no machine; no address
def test_a_machine_whose_name_has_no_address_of_its_own_takes_the_local_one(monkeypatch, address):
    def resolve(name):
        if address is None:
            raise OSError("no address")
        return address

    monkeypatch.setattr("socket.gethostbyname", resolve)
    assert own_address(dist.HashStore()) == "127.0.0.1"


def test_a_second_group_is_refused():
    dist.init_process_group()
    with pytest.raises(ValueError, match="default process group twice"):
        dist.init_process_group()


def test_other_names_of_pytorchs_are_refused_with_what_there_is():
    with pytest.raises(AttributeError, match=r"retrograd.distributed has no 'rpc': it has Backend, DeviceMesh"):
        _ = dist.rpc


def test_pipelining_has_its_name_of_pytorch():
    from retrograd.distributed import pipelining

    assert pipelining.ScheduleGPipe is rg.pipelining.ScheduleGPipe
    assert pipelining._Action is rg.pipelining._Action


def test_the_default_group_is_an_attribute_of_the_class():
    assert dist.GroupMember.WORLD is dist.group.WORLD is None
    dist.init_process_group()
    assert dist.get_world_size(dist.GroupMember.WORLD) == dist.get_world_size(dist.group.WORLD) == 1


def test_the_rank_on_a_host_is_that_of_the_launcher(monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert not dist.is_torchelastic_launched()
    assert dist.get_node_local_rank(fallback_rank=3) == 3
    with pytest.raises(RuntimeError, match=r"start the script by `retrograd run -n 2 SCRIPT`, or pass fallback_rank"):
        dist.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert dist.is_torchelastic_launched()
    assert dist.get_node_local_rank(fallback_rank=3) == 1


def test_names_of_backends_are_those_that_a_group_takes():
    assert dist.Backend("GLOO") == dist.Backend.GLOO == "gloo"
    assert [dist.is_backend_available(name) for name in ("gloo", "MPI", "nccl")] == [True, True, False]
    assert not dist.is_ucc_available()
    assert not dist.is_xccl_available()
    with pytest.raises(ValueError, match="must be string-ish, got int"):
        dist.Backend(1)
    dist.init_process_group(dist.Backend.GLOO)
    assert dist.get_backend() == dist.Backend.GLOO


def test_a_group_is_split_by_the_numbers_of_its_own_ranks():
    def script():
        odd = dist.new_group([1, 3])
        found = dist.split_group(split_ranks=[[3, 0], [1]])
        ranks = None if found is None else dist.get_process_group_ranks(found)
        if dist.get_rank() in (1, 3):
            ranks = ranks, dist.get_process_group_ranks(dist.split_group(odd, [[0], [1]]))
        for wrong in (None, [], [[0], [0]], [[4]]):
            with pytest.raises(ValueError, match="split_group: expected lists of different ranks from 0 to 3"):
                dist.split_group(None, wrong)
        return ranks

    assert dist.run_threads(script, 4) == [[0, 3], ([1], [1]), None, ([0, 3], [3])]
