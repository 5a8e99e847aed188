"""The report of a bug can be pasted anywhere: it says what happened, and no secret of the person's."""

import os
import secrets
from pathlib import Path

import pytest

from relay import bug
from relay.host import redact


def _fail(value: str) -> None:
    raise ValueError(f"cannot use {value!r}")


def test_a_report_says_what_happened_without_the_secrets_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    held, shaped = f"it's {secrets.token_urlsafe(24)}", "ghp" + "_" + secrets.token_hex(18)
    monkeypatch.setenv("SERVICE_TOKEN", held)
    redact.forget()
    with pytest.raises(ValueError, match="cannot use") as caught:
        _fail(held)
    path = bug.report(caught.value, ["answer", "fix", f"with {held} and {shaped}"])
    text = path.read_text()
    assert "relay answer fix 'with [redacted SERVICE_TOKEN] and [redacted github-token]'" in text
    assert "cannot use" in text
    assert "Traceback" in text
    assert held[5:] not in text
    assert shaped not in text


def test_a_report_is_for_the_person_alone_and_lies_in_their_state_folder() -> None:
    path = bug.report(ValueError("x"), [])
    assert path.parent == Path(os.environ["XDG_STATE_HOME"], "relay", "bugs")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
