"""Relay drives coding agents through a task, one at a time, and believes nobody."""

__version__ = "0.1.0"
