"""Modules of `module_aliases.py`: scripts import them by PyTorch's paths, and a program that does not pays nothing."""

import subprocess
import sys

import pytest
from tests.case_groups import group_cases

import retrograd as rg
from retrograd.module_aliases import MODULES


def printed(code: str) -> str:
    """Return what code prints in a new process."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@group_cases
@pytest.mark.parametrize("path", MODULES)
def test_every_listed_name_can_be_imported(path):
    names = [entry.partition("=")[0] for entry in " ".join(MODULES[path].values()).split()]
    found = __import__(f"retrograd.{path}", fromlist=["*"])
    for name in names:
        assert callable(getattr(found, name)) or name == "default_collate_fn_map", name
    assert set(found.__all__) == {name for name in names if name[0] != "_"}
    assert set(names) <= set(dir(found))


def test_the_table_is_read_when_a_module_of_it_is_first_imported():
    loaded = "'retrograd.module_aliases' in sys.modules"
    code = f"import sys, retrograd as rg\nrg.nn.Linear\nprint({loaded})\nimport retrograd.nn.modules\nprint({loaded})"
    assert printed(code).split() == ["False", "True"]


@pytest.mark.parametrize(
    "path",
    [
        "nn.modules.batchnorm._BatchNorm",
        "optim.adamw.AdamW",
        "utils.data.dataloader.default_collate",
        "functional.norm",
    ],
)
def test_modules_are_attributes_of_their_package_before_they_are_imported(path):
    assert printed(f"import retrograd as rg\nprint(rg.{path}.__name__)") == path.rpartition(".")[2]


def test_a_class_is_the_same_under_both_paths():
    assert rg.nn.modules.conv.Conv2d is rg.nn.Conv2d
    assert rg.nn.modules.Conv2d is rg.nn.Conv2d


@pytest.mark.parametrize("path", ["nn.utils.weight_norm", "nn.utils.spectral_norm", "nn.parallel.data_parallel"])
def test_a_function_stays_a_function_after_the_import_of_the_module_of_its_name(path):
    name = path.rpartition(".")[2]
    code = f"import retrograd as rg\nfrom retrograd.{path} import {name} as f\nprint(f is rg.{path})"
    assert printed(code) == "True"
    assert printed(f"import retrograd as rg\nimport retrograd.{path}\nprint(callable(rg.{path}))") == "True"


def test_the_names_of_a_module_are_imported_by_a_star():
    assert (
        printed("from retrograd.nn.modules.conv import *\nprint(Conv2d.__name__, '_ConvNd' in dir())") == "Conv2d False"
    )


def test_a_name_that_a_module_lacks_is_an_attribute_error_with_both_names():
    with pytest.raises(AttributeError, match=r"module 'retrograd\.nn\.modules\.conv' has no attribute 'Linear'"):
        rg.nn.modules.conv.Linear  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"retrograd\.nn\.modules\.nothing"):
        __import__("retrograd.nn.modules.nothing")


def test_the_namespace_of_a_module_has_its_classes():
    from retrograd.nn.modules import activation

    assert vars(activation)["ReLU"] is rg.nn.ReLU
