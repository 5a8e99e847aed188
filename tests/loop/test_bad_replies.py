"""A reply is read strictly, once, from a plain file; what it is not is said, and nothing in it is believed."""

import json
from typing import Any

import pytest

from tests.loop.faults import kept, stopped, through, untouched
from tests.world import FIXED, World

REPLY = "import os; path = os.environ['RELAY_REPLY']; nonce = os.environ['RELAY_NONCE']\n"


def _write(content: str) -> str:
    return f"open(path, 'w').write({content!r}.replace('NONCE', nonce))"


BAD = {
    "no JSON": (_write("done!"), "it is not JSON"),
    "nothing in it": (_write(""), "it is empty"),
    "two values": (_write("{} {}"), "more follows after the first JSON value"),
    "a list": (_write("[]"), "does not fit"),
    "not UTF-8": ("open(path, 'wb').write(b'{\"status\": \"\\xff\"}')", "not UTF-8"),
    "NUL": (_write('{"summary": "\\u0000"}'), "NUL"),
    "not a number": (_write('{"summary": NaN}'), "NaN"),
    "nested for ever": (_write("[" * 100_000), "nested too deeply"),
    "a link to a secret": ("os.symlink('/etc/passwd', path)", "only a plain file is read"),
    "a link to a good reply": (
        "open(path + '.mine', 'w').write(GOOD); os.symlink(path + '.mine', path)",
        "a plain file",
    ),
    "a folder": ("os.mkdir(path)", "not a plain file"),
    "a FIFO": ("os.mkfifo(path)", "not a plain file"),
    "a device": ("os.symlink('/dev/zero', path)", "only a plain file is read"),
    "too large": ("open(path, 'w').write('{\"summary\": \"' + 'x' * (5 << 20) + '\"}')", "larger than 4194304 bytes"),
    "sparse": ("open(path, 'w').truncate(1 << 40)", "larger than 4194304 bytes"),
}
"""What an agent writes instead of a reply, whatever its kind, and what is said of it."""

BOTH = ("no JSON", "a link to a secret", "a FIFO", "too large")
"""Those that a judge plays too: what comes before the schema is one door for all."""

WORK: dict[str, tuple[dict[str, Any], str]] = {
    "another status": ({"status": "finished"}, "`$.status`: `finished` is not one of done, blocked"),
    "no status": ({"summary": "all good"}, "`$.status` is missing"),
    "an unknown key": ({"status": "done", "sumary": "x"}, "did you mean `summary`?"),
    "a wrong type": ({"status": "done", "risks": "none"}, "`$.risks`: expected `array`, got `str`"),
    "a wrong type inside": ({"status": "done", "decisions": [{"what": "x"}]}, "`$.decisions[0].why` is missing"),
    "a judge's": ({"verdict": "approve", "nonce": "NONCE"}, "`$.verdict` is not a known key"),
}
JUDGE: dict[str, tuple[dict[str, Any], str]] = {
    "another nonce": ({"verdict": "approve", "nonce": "0" * 32}, "`$.nonce` is not the nonce of this leg"),
    "no nonce": ({"verdict": "approve"}, "`$.nonce` is missing"),
    "an empty nonce": ({"verdict": "approve", "nonce": ""}, "`$.nonce` is not the nonce of this leg"),
    "another verdict": ({"verdict": "lgtm", "nonce": "NONCE"}, "`$.verdict`: `lgtm` is not one of"),
    "what Relay derives": ({"verdict": "inconclusive", "nonce": "NONCE"}, "`inconclusive` is not one of"),
    "a finding without a place": (
        {"verdict": "revise", "nonce": "NONCE", "findings": [{"severity": "major", "title": "x"}]},
        "`$.findings[0].path` is missing",
    ),
    "a worker's": ({"status": "done"}, "`$.status` is not a known key"),
}


SHAPES: dict[str, dict[str, tuple[dict[str, Any], str]]] = {"implement": WORK, "review": JUDGE}


def _play(world: World, phase: str, lines: str) -> None:
    vendor = {"implement": "north"}.get(phase, "south")
    good = json.dumps({"status": "done"} if phase == "implement" else {"verdict": "approve", "nonce": "NONCE"})
    name = "implementer" if phase == "implement" else f"{phase}-judge"
    fix = f"write({{'calc.py': {FIXED!r}}})\n" if phase == "implement" else ""
    world.python(name, f"{REPLY}GOOD = {good!r}.replace('NONCE', nonce)\n{fix}{lines}\n", phase=phase, vendor=vendor)


@pytest.mark.parametrize("phase", ["implement", "review"])
def test_what_is_no_reply_is_named_each_time_and_believed_never(world: World, phase: str) -> None:
    """The legs of one run play the cases one after the other; a person resumes where Relay gives up."""
    shaped = {what: (_write(json.dumps(content)), says) for what, (content, says) in SHAPES[phase].items()}
    cases = {what: BAD[what] for what in (BAD if phase == "implement" else BOTH)} | shaped
    legs = f"pathlib.Path({str(world.runs)!r}).glob('*/legs/*-{phase}/start.json')"
    lines = [line for line, _ in cases.values()]
    _play(world, phase, f"exec({lines!r}[min(len(list({legs})), {len(lines)}) - 1])")
    with untouched(world):
        ran = world.relay("run", world.spec())
        stopped(ran, 4, "relay resume")
        while len(_problems(world, phase)) < len(cases):
            ran = world.relay("resume")
            stopped(ran, 4, "relay resume")
    problems = _problems(world, phase)
    for (what, (_, says)), problem in zip(cases.items(), problems, strict=False):
        assert says in problem, (what, problem)
    played = [receipt for receipt in world.receipts() if receipt["phase"] == phase]
    assert {(receipt["ended_by"], receipt["status"], receipt["claimed_verdict"]) for receipt in played} == {
        ("no-reply", None, None)
    }
    assert {receipt["verdict"] for receipt in played} == {None if phase == "implement" else "inconclusive"}
    assert "root:" not in "".join(problems)
    assert FIXED in kept(world, "calc.py")


def _problems(world: World, phase: str) -> list[str]:
    return [receipt["problem"] for receipt in world.receipts() if receipt["phase"] == phase]


def test_the_nonce_of_an_earlier_leg_is_not_the_nonce_of_this_one(world: World) -> None:
    lines = (
        f"first = {str(world.folder / 'nonce')!r}\nif not os.path.exists(first):\n    open(first, 'w').write(nonce)\n"
    )
    lines += "else:\n    reply(verdict='approve', nonce=open(first).read())\n"
    _play(world, "review", lines)
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "`$.nonce` is not the nonce of this leg")


def test_a_reply_left_in_the_tree_is_no_reply(world: World) -> None:
    _play(world, "review", "pass")
    world.implementer({"calc.py": FIXED, "reply.json": '{"verdict": "approve", "nonce": ""}\n'})
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "wrote no reply to `RELAY_REPLY`")


def test_a_reply_with_terminal_controls_is_read_and_moves_nobodys_cursor(world: World) -> None:
    _play(world, "implement", "reply(status='done', summary='\\033[2Jcleared\\033]0;t\\007')")
    with untouched(world):
        through(world.inside("run", world.spec()))
    shown = world.inside("show", f"{world.only_run()}/01-implement", "note")
    through(shown)
    assert "cleared" in shown.out
    assert not {"\033", "\007"} & set(shown.out + shown.err)
    through(world.inside("approve"))
    assert "\033" not in world.git("log", "-1", "--format=%B")


@pytest.mark.parametrize("phase", ["implement", "review", "acceptance"])
def test_a_question_stops_the_run_and_the_answer_goes_on(world: World, phase: str) -> None:
    ask = "status='blocked'" if phase == "implement" else "verdict='blocked'"
    good = "status='done'" if phase == "implement" else "verdict='approve'"
    lines = f"if turn == 1:\n    reply({ask}, question='which port?')\n"
    _play(world, phase, f"{lines}else:\n    assert 'port 8080' in prompt\n    reply({good})")
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "the agent asks", "relay answer")
        through(world.inside("answer", world.only_run(), "port 8080"))
        through(world.inside("resume"))
    assert world.receipts()[-1]["phase"] == "acceptance"
