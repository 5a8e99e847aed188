"""Counts calls, so that a test can hold a bound that no slow machine breaks."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count by name the functions that are called meanwhile, those of Python itself too."""
    count: Counter[str] = Counter()

    def note(frame: FrameType, event: str, arg: Any) -> None:  # noqa: ANN401 - as `sys.setprofile` says
        if event in {"call", "c_call"}:
            count[frame.f_code.co_name if event == "call" else arg.__name__] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield count
    finally:
        sys.setprofile(before)
