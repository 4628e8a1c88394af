"""Images in other sizes: interpolation, sampling on grids, pixels to channels."""
