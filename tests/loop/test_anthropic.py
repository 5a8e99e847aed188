"""A whole relay over Anthropic's Messages: a session hands over, a judge objects, a quota is waited for."""

from relay.host import jail
from tests.service import Fault, Hits, Service, Turn, Usage, do, nonce
from tests.world import FIXED, World

WRONG = "def add(a, b):\n    return a * b\n"
FINDING = {
    "severity": "major",
    "title": "multiplies",
    "path": "calc.py",
    "line": 2,
    "quote": "return a * b",
    "why": "no sum",
}
FULL = Usage(input=899_000, output=1000)


def line_up(world: World, service: Service) -> None:
    for phase, vendor in (("implement", "north"), ("review", "south"), ("acceptance", "south")):
        line = {"backend": "anthropic", "model": "claude-opus-5-5", "base_url": service.url, "vendor": vendor}
        world.agents[f"{phase}er"] = line
        world.phases[phase] = {"agent": f"{phase}er"}
    world.phases["review"]["allow_same_vendor"] = True  # the model that answers is of one family
    world.save(jail={"mode": "required" if jail.choose("auto")[0].holds else "off"})


def test_a_run_is_implemented_handed_over_reviewed_repaired_and_accepted(world: World) -> None:
    work = [
        Turn(do.read("calc.py"), do.run("echo seen > notes.txt")).but(usage=FULL),
        do.reply({"status": "done", "summary": "looked at it", "todo": ["mend `add`"]}),
        do.write("calc.py", WRONG),
        Turn(do.run("cat notes.txt; rm notes.txt")),
        do.reply({"status": "done", "summary": "mended"}),
        Fault("drop", times=1),
        do.edit("calc.py", "a * b", "a + b"),
        do.reply({"status": "done", "summary": "mended for good"}),
    ]
    review = [
        do.run("echo changed > calc.py; cat calc.py"),
        do.reply({"verdict": "revise", "nonce": nonce, "findings": [FINDING]}),
        do.reply({"verdict": "approve", "nonce": nonce}),
    ]
    script = {
        "You are the implementer": Hits(work),
        "phase `review`": Hits(review if jail.choose("auto")[0].holds else review[1:]),
        "phase `acceptance`": [do.reply({"verdict": "approve", "nonce": nonce})],
    }
    with Service(script) as service:
        line_up(world, service)
        ran = world.relay("run", world.spec())
        assert (ran.code, service.problems) == (0, []), ran
    receipts = world.receipts()
    ends = [(receipt["phase"], receipt["ended_by"]) for receipt in receipts]
    assert ends[:3] == [("implement", "handover"), ("implement", "reply"), ("review", "reply")]
    assert ends[3:] == [("implement", "reply"), ("review", "reply"), ("acceptance", "reply")]
    assert world.show(receipts[-1]["head"], "calc.py") == FIXED
    assert "seen" in world.text(receipts[1]["leg"], "transcript.jsonl")
    assert "mend `add`" in world.text(receipts[0]["leg"], "note.md")
    assert receipts[0]["usage"]["input"] > 899_000
    assert receipts[0]["cost_microusd"] > 3_000_000
    assert [receipt["breaches"] for receipt in receipts] == [[]] * 6


def test_a_quota_leaves_the_run_waiting_until_the_service_says(world: World) -> None:
    script = {"": [do.write("calc.py", FIXED), Fault("quota", resets_at=1_900_000_000)]}
    with Service(script) as service:
        line_up(world, service)
        ran = world.relay("run", world.spec())
    assert (ran.code, service.problems) == (5, []), ran
    assert "quota is used up until 2030-03-17 17:46:40" in ran.err
    (receipt,) = world.receipts()
    assert (receipt["ended_by"], receipt["until"]) == ("quota", "2030-03-17T17:46:40Z")
    assert world.show(f"refs/relay/{receipt['run']}/01-implement.cut", "calc.py") == FIXED
