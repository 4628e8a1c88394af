"""Split points annotated on a model: calls accumulate, and copies preserve them."""

import copy
import pickle
from itertools import pairwise

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.pipelining import SplitPoint, annotate_split_points, pipeline

from ..case_groups import group_cases


class Blocks(nn.Module):
    """A model with layers below a path of several parts."""

    def __init__(self):
        super().__init__()
        layers = [nn.Sequential(nn.Linear(5, 5), nn.Tanh()) for _ in range(3)]
        self.inner = nn.ModuleDict({"layers": nn.ModuleList([*layers, fx.symbolic_trace(nn.Linear(5, 5))])})

    def forward(self, x):
        for layer in self.inner["layers"]:
            x = layer(x)
        return x


def stages(model):
    """Return the weights of each stage."""
    pipe = pipeline(model, (rg.ones(2, 5),))
    return [
        [n for n, _ in pipe.get_stage_module(i).named_parameters() if "weight" in n] for i in range(len(pipe.stages))
    ]


WEIGHTS = [f"inner.layers.{i}.{'0.weight' if i < 3 else 'weight'}" for i in range(4)]
BEGIN, END = SplitPoint.BEGINNING, SplitPoint.END
# Calls of annotate_split_points in a row: (path of the module that it is for, spec); the layers that begin a stage.
ANNOTATIONS = {
    "once": ([("", {"inner.layers.1": BEGIN, "inner.layers.3": BEGIN})], [1, 3]),
    "twice": ([("", {"inner.layers.1": BEGIN}), ("", {"inner.layers.3": BEGIN})], [1, 3]),
    "of parts": (
        [("inner", {"layers.0": END}), ("inner.layers", {"1": END}), ("", {"inner.layers.3": BEGIN})],
        [1, 2, 3],
    ),
    "of a part and its parts": ([("", {"inner.layers.1": END, "inner.layers.1.0": BEGIN})], [1, 2]),
    "again alike": ([("", {"inner.layers.1": BEGIN})] * 2, [1]),
    "the last holds": ([("", {"inner.layers.1": BEGIN}), ("", {"inner.layers.1": END})], [2]),
    "the last holds, from elsewhere": ([("", {"inner.layers.1": BEGIN}), ("inner.layers", {"1": END})], [2]),
    "nothing more": ([("", {"inner.layers.2": BEGIN}), ("", {})], [2]),
    "taken back": ([("", {"inner.layers.2": BEGIN, "inner.layers.1": BEGIN}), ("", {"inner.layers.2": None})], [1]),
    "nothing to take back": ([("", {"inner.layers.2": None})], []),
}
COPIES = {
    "itself": lambda model: model,
    "a copy": copy.copy,
    "a deep copy": copy.deepcopy,
    "a deep copy of that": lambda model: copy.deepcopy(copy.deepcopy(model)),
    "pickled": lambda model: pickle.loads(pickle.dumps(model)),
    "inside of another, copied": lambda model: copy.deepcopy(nn.Sequential(model))[0],
    "another dtype and back": lambda model: model.double().float(),
}


@group_cases
@pytest.mark.parametrize("made", COPIES)
@pytest.mark.parametrize("case", ANNOTATIONS)
def test_annotations_add_up_and_are_copied_with_the_modules(case, made):
    calls, begun = ANNOTATIONS[case]
    model = Blocks()
    for path, spec in calls:
        annotate_split_points(model.get_submodule(path), spec)
    ends = [0, *begun, 4]
    assert stages(COPIES[made](model)) == [WEIGHTS[a:b] for a, b in pairwise(ends)]


def test_a_copy_s_annotations_are_its_own():
    model = Blocks()
    annotate_split_points(model, {"inner.layers.1": BEGIN})
    other = copy.deepcopy(model)
    annotate_split_points(other, {"inner.layers.2": BEGIN})
    assert [len(stages(m)) for m in (model, other)] == [2, 3]


def test_a_spec_adds_to_annotations():
    model = Blocks()
    annotate_split_points(model, {"inner.layers.1": BEGIN})
    assert pipeline(model, (rg.ones(2, 5),), split_spec={"inner.layers.1": END}).num_stages == 3


def test_a_spec_with_a_fault_notes_nothing():
    model = Blocks()
    for spec, error in (({"inner.layers.1": BEGIN, "none": END}, AttributeError), ({"inner": END, "": 3}, ValueError)):
        with pytest.raises(error):
            annotate_split_points(model, spec)
    assert len(stages(model)) == 1
    with pytest.raises(ValueError, match="got None"):
        pipeline(model, (rg.ones(2, 5),), split_spec={"inner": None})
