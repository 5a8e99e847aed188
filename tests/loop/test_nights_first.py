"""Who begins a run while a night works on one is told who holds the repository, and how the night takes theirs next."""

import shlex

from tests.loop import dusk
from tests.loop.doomed import await_that
from tests.loop.dusk import items, queued, task
from tests.loop.faults import refused, through
from tests.world import SAFETY, World


def test_a_run_that_is_begun_while_a_night_works_is_refused_and_goes_next_by_the_command_that_is_printed(
    world: World,
) -> None:
    begun, go = world.folder / "begun", world.folder / "go"
    dusk.short(world, f"touch {begun}; while ! test -e {go}; do sleep 0.05; done; {dusk.MENDED}")
    queued(world, "One", "Two")
    through(world.inside("queue", "add", "--priority", "3", world.spec(task("Three"), "three.md")))
    night = world.start("nightly")
    await_that(begun.exists, "the night took nothing")
    [one] = [path.name for path in world.runs.iterdir()]
    ran = world.inside("run", world.spec(task("Mine"), "mine.md"))
    said = refused(ran, 75, f"or end it: relay stop {one}")
    assert said.startswith(f"`run {one}` of a night already holds the repository: process {night.pid}, since ")
    assert said.count(one) == 1
    [hint] = [line.removeprefix("hint: ") for line in ran.err.splitlines() if line.startswith("hint: ")]
    through(world.inside(*shlex.split(hint.partition("    (")[0])[1:]))
    go.touch()
    night.communicate(timeout=SAFETY)
    assert night.returncode == 0
    assert [spec for _, spec, _ in items(world)] == ["three", "mine", "one", "two"]


def test_who_is_kept_waiting_by_a_person_is_told_of_no_night_and_of_the_run_once(world: World) -> None:
    seen = dusk.slow(world)
    running = world.start("run", world.spec())
    await_that(seen.exists, "the run did not begin")
    ran = world.inside("run", world.spec(name="mine.md"))
    said = refused(ran, 75, f"hint: wait for it, or end it: relay stop {world.only_run()}\n")
    assert said.startswith(f"`run {world.only_run()}` already holds the repository: process {running.pid}, since ")
    assert "queue" not in ran.err
    running.terminate()
    running.communicate(timeout=SAFETY)
