"""Random numbers from distributions; where the parameters shape the numbers, gradients reach them."""
