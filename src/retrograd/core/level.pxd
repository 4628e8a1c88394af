from retrograd.core.state cimport State, at, current
