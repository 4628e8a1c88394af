"""Window functions, and other tensors made of numbers."""
