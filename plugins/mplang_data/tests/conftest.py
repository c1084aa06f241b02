"""Fixtures: files of data sets."""

from people import folder as folder
