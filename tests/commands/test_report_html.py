"""Where `relay report --html` writes, and what it says where it cannot."""

from tests.world import World


def test_a_page_and_json_lines_do_not_share_stdout(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    ran = world.relay("report", "--html", "-", "--json")
    [event] = ran.events
    assert (ran.code, event["type"]) == (2, "error"), ran
    assert event["hint"] == "relay report --json, or with --html FILE"
    [event] = world.relay("report", "--html", "page.html", "--json").events
    assert event["type"] == "page"


def test_a_folder_that_is_not_there_is_named_with_the_command_that_makes_it(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    gone = world.folder / "not there" / "deep"
    ran = world.relay("report", "--html", gone / "x.html")
    assert (ran.code, ran.out) == (2, ""), ran
    assert f"there is no folder `{gone}`" in ran.err
    assert f"hint: mkdir -p '{gone}'" in ran.err
    gone.mkdir(parents=True)
    assert world.relay("report", "--html", gone / "x.html").code == 0
