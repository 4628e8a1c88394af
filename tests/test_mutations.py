"""The bugs of `make mutations` can be seeded: sources change, and a missing text would end the run."""

import pytest
from tests.mutations import MUTATIONS, ROOT


@pytest.mark.once("it reads sources")
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.bug)
def test_every_seeded_bug_replaces_a_text_that_is_there_once(mutation):
    assert (ROOT / "src/retrograd" / mutation.path).read_text().count(mutation.old) == 1
