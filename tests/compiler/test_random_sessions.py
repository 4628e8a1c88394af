"""Random sessions of all families have the eager results."""

import warnings

import pytest
from tests.tables import ALL_SAMPLES

import retrograd as rg

from .session_families import FAMILIES
from .sessions import outcomes, random_session

BLOCKS = {"training steps": 10}  # the others have one


@pytest.mark.parametrize(("name", "block"), [(n, b) for n in FAMILIES for b in range(BLOCKS.get(n, 1))])
def test_random_sessions_have_the_eager_results(name, block):
    programs, size = 0, 100 if ALL_SAMPLES else 6
    for seed in range(size * block, size * (block + 1)):
        session = random_session(seed, FAMILIES[name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, _ = outcomes(session, lambda f: f)
            found, functions = outcomes(session, rg.compile)
        events = [number // 5 for number, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]]
        assert not events, f"{name}, seed {seed}, event {events[0]}:\n{session[0]}{session[1]}"
        programs += any(getattr(f, "programs", ()) for f in functions)
    assert programs >= size / 6  # the others run in parts, eagerly, or inside of transforms
