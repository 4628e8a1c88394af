"""For all tests: the package is imported before pytest looks for doctests, which would else import its parts twice."""

import retrograd.ops  # noqa: F401
