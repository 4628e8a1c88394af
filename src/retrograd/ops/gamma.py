"""The gamma function and its relatives: beta, digamma, polygamma, incomplete ones."""
