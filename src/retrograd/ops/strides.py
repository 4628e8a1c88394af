"""Views by strides and sliding windows."""
