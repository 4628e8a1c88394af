"""`torch._functorch`: a package whose modules have the names."""
