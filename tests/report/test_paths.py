"""The name of a file that an agent made is shown letter by letter: none of them acts, and none is dropped."""

from pathlib import Path

from relay.report import figures
from tests.loop.faults import through
from tests.world import FIXED, World

NAMES = {
    "\x1b[31mred.py": "<U+001B>[31mred.py",
    "two\nlines.py": "two<U+000A>lines.py",
    "\u202egpj.exe": "<U+202E>gpj.exe",
    "\ufdd4green\ufdd0.py": "<U+FDD4>green<U+FDD0>.py",
}


def test_letters_of_a_path_that_are_not_seen_are_shown_by_number_on_the_terminal_and_on_the_page(
    tmp_path: Path,
) -> None:
    world = World.simple(tmp_path)
    world.implementer({"calc.py": FIXED, **dict.fromkeys(NAMES, "x\n")})
    world.save()
    through(world.relay("run", world.spec()))
    run = world.only_run()
    texts = [world.relay("show", f"{run}/1").out, world.relay("trace", run).out]
    page = world.relay("report", run, "--html", "-").out
    for shown in NAMES.values():
        assert all(shown in text for text in texts), shown
        assert page.count(f"<code>{shown.replace('<', '&lt;').replace('>', '&gt;')}</code>") == 2, shown
    assert not any(line.startswith("lines.py") for text in texts for line in text.splitlines())


def test_a_path_of_any_script_stays_as_it_is() -> None:
    for path in ("src/na\u00efve \u65e5\u672c.py", "a b/'c\".py", "$(id).py", "-rf"):
        assert figures.named(path) == path


def test_a_control_inside_a_secret_does_not_hide_it_from_the_page(world: World) -> None:
    secret = "pw-7Gk2mQ9xLr4Tz" + "8Vb"
    world.implementer({"calc.py": f"{FIXED}# {secret[:5]}\x07{secret[5:]} {secret[:5]}\ufdd4{secret[5:]}\n"})
    through(world.relay("run", world.spec()))
    page = world.relay("report", world.only_run(), "--html", "-", env={"MY_TOKEN": secret}).out
    assert secret not in page
    assert "[redacted MY_TOKEN] [redacted MY_TOKEN]" in page
