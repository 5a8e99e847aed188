"""Decisions, pure: no files, no clock, no git."""
