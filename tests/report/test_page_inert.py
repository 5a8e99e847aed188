"""Whatever agents write, the page runs nothing, fetches nothing and says what it is: looked at with a real browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relay import alerts
from relay.record import ledger as ledgers
from relay.report import page, stats
from relay.terms import Alert, Item
from tests.report import breakfast, browser, hostile
from tests.report.browser import Seen, Server
from tests.world import World

PAPER, NIGHT = "rgb(251, 250, 247)", "rgb(23, 22, 20)"
"""What the page is written on, by day and where the person likes it dark."""

FORBIDDEN = {"script", "img", "iframe", "link", "base", "form", "input", "object", "embed", "plaintext", "xmp"}


@contextmanager
def _pages(folder: Path) -> Iterator[tuple[Server, World, dict[str, str]]]:
    """Make hostile runs, their night and its pages; a server counts what any of it fetches."""
    with browser.serving() as server:
        world = hostile.made(folder, server.url)
        ledger = breakfast.repo(world)
        runs = ledgers.runs(ledger)
        evil = hostile.texts(server.url)
        skipped = tuple(Item(did="skipped", spec=text, reason=text) for text in evil)
        night = breakfast.night(world, {run: run for run in runs})
        touched = breakfast.night(world, {}, items=(*night.items, *skipped), reason=evil[0])
        for number, text in enumerate(evil):
            raised = Alert(key=str(number), kind=text, what=text, command=text, since=text, run=runs[0])
            alerts.tell(ledger, raised)
        counted = stats.count(ledger, runs)
        made = {run: page.run(ledger, run) for run in runs}
        yield server, world, made | {"night": page.night(ledger, touched), "stats": page.stats(ledger, counted)}


def _inert(seen: Seen) -> None:
    """Require that a document has nothing that runs or fetches."""
    assert not FORBIDDEN & set(seen.tags)
    assert [name for _, name, _ in seen.attributes if name.startswith("on") or name in {"src", "style", "action"}] == []
    links = {value for tag, name, value in seen.attributes if name in {"href", "xlink:href"}}
    assert {link[:1] for link in links} <= {"#"}
    assert (seen.tags.count("style"), seen.tags.count("meta")) == (1, 5)


@browser.needed
def test_a_hostile_agent_is_inert_in_a_browser_and_a_page_without_care_would_not_be(tmp_path: Path) -> None:
    with _pages(tmp_path / "world") as (server, _, pages):
        careless = "<!doctype html><title>x</title>" + "".join(hostile.texts(server.url)[:2])
        assert browser.look(browser.dump(browser.saved(tmp_path, careless))).title.endswith(hostile.TITLE)
        assert "/fetched" in server.hits, "the browser runs scripts, and the server counts what they fetch"
        server.hits.clear()
        for name, text in pages.items():
            seen = browser.look(browser.dump(browser.saved(tmp_path, text)))
            assert seen.title != hostile.TITLE, name
            _inert(seen)
        assert server.hits == []


@browser.needed
def test_were_a_script_ever_to_slip_in_the_policy_of_the_page_stops_it(world: World, tmp_path: Path) -> None:
    assert world.relay("run", world.spec()).code == 0
    ledger = breakfast.repo(world)
    text = page.run(ledger, world.only_run())
    with browser.serving() as server:
        evil = "".join(hostile.texts(server.url)[1:5]).replace('http-equiv="refresh"', "")
        planted = text.replace("<main>", f"<main>{evil}<script>document.title='{hostile.TITLE}'</script>")
        bare = planted.replace("Content-Security-Policy", "Nothing")
        assert browser.look(browser.dump(browser.saved(tmp_path, bare))).title == hostile.TITLE
        assert server.hits, "without the policy all of it works"
        server.hits.clear()
        seen = browser.look(browser.dump(browser.saved(tmp_path, planted)))
        assert (seen.title, server.hits) == ("project: Make add add", [])


def test_letters_that_are_not_seen_are_shown_by_their_numbers_and_what_terminals_obey_is_gone(tmp_path: Path) -> None:
    with _pages(tmp_path / "world") as (_, _, pages):
        for name, text in pages.items():
            assert not set(text) & set("\u202e\u2066\u2069\u200b\ufeff\x1b\x9b\x00\x07"), name
            assert len(text) < 2_000_000, "a line of a megabyte is cut, with a mark"
        whole = "".join(pages.values())
        assert "&lt;U+202E&gt;" in whole
        assert "[cut: " in whole
        assert "{{ 7 * 7 }}" in whole, "what looks like a template is text"


@browser.needed
def test_no_page_scrolls_sideways_on_a_telephone(tmp_path: Path) -> None:
    with _pages(tmp_path / "world") as (_, _, pages):
        for name, text in pages.items():
            assert browser.wide(text, 360) == (360, PAPER), name


@browser.needed
def test_a_page_is_dark_where_the_person_likes_it_dark(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    text = page.run(breakfast.repo(world), world.only_run())
    assert browser.wide(text, 800, "--blink-settings=preferredColorScheme=0") == (800, NIGHT)
