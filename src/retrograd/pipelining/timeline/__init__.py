"""Timelines of pipelines, planned or measured: as data, pictures, traces and an HTML page."""
