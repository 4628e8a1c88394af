"""Timelines of pipelines, planned or measured: as data, pictures, traces and a page for a browser."""
