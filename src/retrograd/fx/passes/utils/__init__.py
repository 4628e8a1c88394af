"""Tools for passes: parts of graphs as modules, and matches of patterns."""
