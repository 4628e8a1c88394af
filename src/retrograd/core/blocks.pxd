from retrograd.core.state cimport State, current
