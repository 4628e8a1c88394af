"""Processes that divide a model over two dimensions of a mesh train like the whole model."""

from .test_collectives import over_mpi


def test_ranks_over_mpi_train_like_the_whole_model(tmp_path):
    for found in over_mpi(tmp_path, "two_dimensions_script.py", ranks=4):
        assert found["losses"] < 1e-12
        assert found["norms"] < 1e-12
        assert found["parameters"] < 1e-9  # Adam divides by the root of a mean that may be small
