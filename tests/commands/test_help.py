"""The help of verbs: whole sentences, and every form of a value that is taken."""

import re

import pytest

from tests.world import World


@pytest.mark.parametrize("verb", ["queue", "agents", "schedule", "note"])
def test_the_help_of_a_group_says_whole_sentences(verb: str, world: World) -> None:
    ran = world.relay(verb, "--help")
    assert ran.code == 0, ran
    told = ran.out.partition("Commands:\n")[2]
    assert told, ran
    assert "..." not in told, ran
    assert all(sentence.endswith(".") for sentence in re.split(r"\n  (?=\w)", told.strip())), ran


def test_the_end_of_a_night_is_taken_in_every_form_that_its_help_names(world: World) -> None:
    told = " ".join(world.relay("nightly", "--help").out.split())
    assert "End then: 07:00, 2026-12-01 or 2026-12-01T07:00, local time." in told
    world.save()
    for form in ("07:00", "9999-12-01", "9998-12-01T07:00"):
        ran = world.relay("nightly", "--dry-run", "--until", form)
        assert ran.code == 0, ran
