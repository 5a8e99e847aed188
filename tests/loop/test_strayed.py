"""A spec may say which files its run touches; what lies outside them is named wherever the run says why it stands."""

from tests.loop.faults import stopped, through
from tests.world import FIXED, SPEC, World

ONLY_CALC = f'+++\nfiles = ["calc.py"]\n+++\n{SPEC}'


def test_a_file_that_the_spec_does_not_let_a_run_touch_is_named_by_the_reason_by_show_and_to_the_next_leg(
    world: World,
) -> None:
    world.implementer({"calc.py": FIXED, "docs/outside.md": "mine\n"})
    ran = world.inside("run", world.spec(ONLY_CALC))
    why = "a check is red that was green at the base: `only files that the spec names, and not docs/outside.md`"
    stopped(ran, 4, why)
    run = world.only_run()
    assert f"needs: {why}" in world.inside("show", run).out
    for verb in (("show", f"{run}/01-implement"), ("status", "--json"), ("report", run)):
        assert "docs/outside.md" in world.inside(*verb).out, verb
    assert f"Why this leg runs: {why}" in world.text("02-implement", "prompt.md")
    assert 'files = ["calc.py"]' in world.text("01-implement", "prompt.md"), "it was told before it began"


def test_of_many_files_that_a_run_may_not_touch_some_are_named_and_the_log_has_all(world: World) -> None:
    names = [f"outside-{number}.md" for number in range(8)]
    world.implementer({"calc.py": FIXED, **dict.fromkeys(names, "x\n")}, {"calc.py": FIXED})
    stopped(world.inside("run", world.spec(ONLY_CALC)), 4, "and not outside-0.md, outside-1.md", "and 3 more")
    log = world.text("01-implement", "check-1.log")
    assert [name for name in names if name not in log] == []


def test_a_pattern_lets_a_run_touch_what_lies_below_a_folder(world: World) -> None:
    world.implementer({"calc.py": FIXED, "docs/deep/inside.md": "x\n"})
    through(world.inside("run", world.spec(ONLY_CALC.replace('"calc.py"', '"calc.py", "docs/**"'))))
