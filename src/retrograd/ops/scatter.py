"""Writing into places along a dimension: the counterparts of gathering."""
