"""`hub` loads local repositories as PyTorch does, and refuses what would be a download."""

import pytest
import torch

import retrograd as rg

HUBCONF = '''
dependencies = ["json"]
from neighbour import scale
def layer(size, *, factor=1):
    """Return a pair of sizes."""
    return scale(size, factor), size
def _private(): pass
number = 3
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "neighbour.py").write_text("def scale(size, factor): return size * factor")
    return tmp_path


def load(m, folder, *args, **kwargs):
    return m.hub.load(str(folder), *args, source="local", **kwargs)


def test_a_local_function_is_called_with_its_arguments(folder):
    for m in (rg, torch):
        assert load(m, folder, "layer", 3, factor=2) == (6, 3)


@pytest.mark.parametrize("model", ["number", "absent", 3])
def test_what_is_no_function_is_refused(folder, model):
    errors = []
    for m in (rg, torch):
        with pytest.raises((RuntimeError, ValueError)) as error:
            load(m, folder, model)
        errors.append(error)
    assert errors[0].type is errors[1].type
    assert str(errors[1].value) in str(errors[0].value)


def test_missing_dependencies_are_named(folder):
    (folder / "hubconf.py").write_text('dependencies = ["no_such_module", "json"]\ndef f(): pass')
    for m in (rg, torch):
        with pytest.raises(RuntimeError, match="Missing dependencies: no_such_module"):
            load(m, folder, "f")


def test_public_functions_are_listed_and_explained(folder):
    assert rg.hub.list(folder) == ["scale", "layer"]
    assert rg.hub.help(folder, "layer") == "Return a pair of sizes."


def test_downloads_are_refused_with_the_way_out(tmp_path):
    with pytest.raises(ValueError, match="nothing is downloaded here; clone the repository 'pytorch/vision'"):
        rg.hub.load("pytorch/vision", "resnet18")
    for call in (lambda: rg.hub.list("pytorch/vision"), lambda: rg.hub.load(tmp_path, "f", source="local")):
        with pytest.raises(FileNotFoundError, match=r"hubconf\.py' does not exist"):
            call()
    for m in (rg, torch):
        with pytest.raises(ValueError, match="Unknown source"):
            m.hub.load("a", "b", source="web")


def test_the_folder_of_files_is_pytorchs(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert rg.hub.get_dir() == torch.hub.get_dir() == str(tmp_path / "hub")
    try:
        rg.hub.set_dir(tmp_path)
        assert rg.hub.get_dir() == str(tmp_path)
    finally:
        rg.hub.set_dir(None)
