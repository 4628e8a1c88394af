"""Ranks that save into other folders, or other steps, all raise one error that says so, and leave no files."""

import pytest

import retrograd as rg
import retrograd.distributed as dist
import retrograd.distributed.checkpoint as checkpoint
from retrograd.pipelining import Pipeline
from retrograd.pipelining.checkpoint import Checkpoints


def save(folder, step):
    checkpoint.save({"x": rg.ones(2)}, checkpoint_id=folder)


def async_save(folder, step):
    checkpoint.async_save({"x": rg.ones(2)}, checkpoint_id=folder).result()


def save_pipeline(folder, step):
    model = rg.nn.Sequential(rg.nn.Linear(2, 2), rg.nn.Linear(2, 1))
    Checkpoints(folder).save(step, Pipeline(model, stages=2))


def outcome(call, folder, step):
    try:
        call(folder, step)
    except Exception as error:
        return type(error).__name__, str(error)
    return "saved"


@pytest.mark.parametrize("call", [save, async_save, save_pipeline])
@pytest.mark.parametrize("exists", [True, False])
def test_another_folder_on_a_rank_is_an_error_of_all_ranks(tmp_path, call, exists):
    if exists:
        (tmp_path / "1").mkdir()

    def script():
        rank = dist.get_rank()
        return outcome(call, tmp_path / str(rank), 0), outcome(call, tmp_path / "0", 0)

    for other, same in dist.run_threads(script, 2):
        assert other[0] == "FileNotFoundError"
        assert f"rank 0 does not write to {tmp_path / '1'}, which is the folder of rank 1" in other[1]
        assert same == "saved"
    assert not (tmp_path / "1").exists() or not list((tmp_path / "1").iterdir())


def test_another_step_on_a_rank_is_an_error_of_all_ranks(tmp_path):
    def script():
        return outcome(save_pipeline, tmp_path, 3 + dist.get_rank()), outcome(save_pipeline, tmp_path, 3)

    for other, same in dist.run_threads(script, 2):
        assert other == (
            "ValueError",
            "save: rank 1 saves step 4, and rank 0 step 3; all ranks must save the same step",
        )
        assert same == "saved"
    assert [entry.name for entry in tmp_path.iterdir()] == ["step-00000003"]
