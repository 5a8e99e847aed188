"""Which repros are worth a run, and what a finding is worth where there is no time left for one."""

import pytest

from relay.host import repository
from relay.proof import evidence
from relay.proof.trees import IN_ALL, LATE, Trees
from relay.record import ledger as ledgers
from relay.rules.findings import Known
from relay.terms import ClaimedFinding, Repro, Severity
from tests.findings import claim, known
from tests.loop.faults import through
from tests.world import World


@pytest.fixture
def trees(world: World) -> Trees:
    """Return the trees of a run that is through, as its next judge would be looked at."""
    through(world.inside("run", world.spec()))
    return _trees(world)


def _trees(world: World, seconds: float = IN_ALL) -> Trees:
    ledger = ledgers.at(repository.discover(world.root))
    plan = ledgers.read_plan(ledger, world.only_run())
    return Trees(ledger, plan, "09-review", world.receipts()[-1]["head"], plan.base, seconds)


def _claim(world: World, severity: Severity = "major", number: int = 0, quote: str = "return a + b") -> ClaimedFinding:
    repro = Repro(command=f"echo {severity} {number} >> {world.folder}/ran; grep -q PI calc.py || exit 3")
    return claim(severity=severity, path="calc.py", line=2, quote=quote, repro=repro)


def _ran(world: World) -> list[str]:
    path = world.folder / "ran"
    return path.read_text().splitlines() if path.exists() else []


def test_only_the_repro_of_what_can_block_is_run_the_gravest_first(world: World, trees: Trees) -> None:
    severities: list[Severity] = ["nit", "major", "minor", "blocker"]
    with trees:
        seen = evidence.look(trees, [_claim(world, severity) for severity in severities], own=False)
    assert [one.proof for one in seen] == ["located", "confirmed", "located", "confirmed"]
    assert list(dict.fromkeys(_ran(world))) == ["blocker 0", "major 0"]


def test_a_repro_that_many_findings_bring_is_run_once(world: World, trees: Trees) -> None:
    with trees:
        seen = evidence.look(trees, [_claim(world)] * 30, own=False)
    assert [one.proof for one in seen] == ["confirmed"] * 30
    assert _ran(world) == ["major 0"] * 3, "in the tree, with the file emptied, and where there is none"


def test_without_time_for_its_repro_a_finding_is_worth_its_place_and_why_is_said(world: World) -> None:
    through(world.inside("run", world.spec()))
    claims = [_claim(world), _claim(world, number=1, quote="nowhere")]
    with _trees(world, seconds=0) as late:
        seen = evidence.look(late, claims, own=False)
    assert [one.proof for one in seen] == ["located", "unfounded"]
    assert seen[0].why == f"its repro shows nothing: {LATE}"
    assert _ran(world) == []


def test_a_repro_that_the_time_of_all_of_them_cuts_short_is_not_held_against_its_finding(world: World) -> None:
    through(world.inside("run", world.spec()))
    with _trees(world, seconds=0.5) as late:
        [seen] = evidence.look(
            late,
            [
                claim(
                    path="calc.py",
                    quote="return a + b",
                    repro=Repro(command="python3 -c 'import calc, time; time.sleep(99)'"),
                )
            ],
            own=False,
        )
    assert (seen.proof, late.seconds <= 0) == ("located", True)
    assert "used up" in seen.why


def test_what_there_is_no_time_to_try_without_the_tree_is_neither_confirmed_nor_green(trees: Trees) -> None:
    shows, passes = Repro(command="grep -q PI calc.py || exit 3"), Repro(command="grep PI calc.py READ", expect_exit=1)
    with trees:
        tried = [trees.tries(repro) for repro in (shows, passes)]
        trees.seconds = 0
        [seen] = evidence.look(trees, [claim(path="calc.py", quote="return a + b", repro=shows)], own=False)
        again = evidence.again(trees, [_known(passes)], own=False)["F0"]
    assert [one.showed for one in tried] == [True, False]
    assert (seen.proof, seen.why) == ("located", f"its repro shows nothing: {LATE}")
    assert (again.did, LATE in again.why) == ("unknown", True)


def _known(*repros: Repro) -> Known:
    return known(quote="return a + b", path="calc.py", evidence="confirmed", shown=repros)


def test_a_finding_is_green_when_all_that_relay_saw_fail_is_green(trees: Trees) -> None:
    fails, passes, missing = (
        Repro(command="grep -q PI calc.py"),
        Repro(command="grep add calc.py"),
        Repro(command="./no"),
    )
    with trees:
        did = [
            evidence.again(trees, [_known(*repros)], own=False)["F0"].did
            for repros in ([passes], [passes, fails], [missing, passes], [missing, fails])
        ]
    assert did == ["green", "shows", "unknown", "shows"]


def test_without_time_what_relay_saw_fail_stays_open(world: World) -> None:
    through(world.inside("run", world.spec()))
    one = _known(Repro(command="grep add calc.py"))
    with _trees(world, seconds=0) as late:
        again = evidence.again(late, [one], own=False)
        kept, settled = evidence.settle(late, [one], (), again)
    assert ([(finding.id, finding.blocks) for finding in kept], settled) == ([("F0", True)], ())
    assert evidence.reasons(kept, (), again) == [f"F0: whether its repro is green cannot be told: {LATE}"]
