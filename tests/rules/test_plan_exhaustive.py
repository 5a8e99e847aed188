"""Every short story that legs and acts can tell, held against a table of patterns that knows nothing of the code.

A story is a line of words, one a receipt: `I.done R.revise answer `. The letters are implement, review, acceptance;
the words come from the closed lists in `terms/words.py`. A row of `TABLE` is a pattern of how a story may end, and what
then comes next; the first row that fits counts.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Final

import pytest

from relay.rules import plan as rules
from relay.terms import Receipt
from tests.receipts import (
    ACCEPTANCE,
    ACTS,
    ENDINGS,
    FAILURES,
    IMPLEMENT,
    REVIEW,
    VERDICTS,
    Event,
    act,
    check,
    criterion,
    judge,
    judge_ended,
    phase,
    relay,
    told,
    work,
)

PLAN: Final = relay(
    phase("implement", "work", max_legs=2),
    phase("review", "judge", "implement", back_to="implement", rounds=2),
    phase("acceptance", "judge", "implement", back_to="implement", rounds=1),
)
NAMES: Final = {"I": IMPLEMENT.name, "R": REVIEW.name, "A": ACCEPTANCE.name}

ASKED: Final[dict[str, Event]] = {
    "I.done": work(),
    "I.unchanged": work(changed=False),
    "I.holds": work(changed=False, criteria=(criterion(met=True),)),
    "I.red": work(checks=(check(1, base_exit=0),)),
    "I.blocked": work(status="blocked"),
    "I.asks": work(asks=True),
    "I.interrupted+": work("interrupted"),
}
WORK: Final = ASKED | {f"I.{end}": work(end, changed=False) for end in ENDINGS if end != "reply"}
JUDGES: Final[dict[str, Event]] = {
    f"{letter}.{word}": event
    for letter, name in (("R", REVIEW.name), ("A", ACCEPTANCE.name))
    for word, event in (
        {verdict: judge(verdict, name) for verdict in VERDICTS}
        | {"asks": judge("revise", name, asks=True)}
        | {end: judge_ended(end, name) for end in ENDINGS if end != "reply"}
    ).items()
}
DEEDS: Final[dict[str, Event]] = {
    "offer": act("offer", phase="implement", reply="/nowhere"),
    "answer": act("answer"),
    "extend": act("extend", minutes="5"),
    "rounds": act("extend", rounds="1"),
    "reject": act("reject", back_to="implement"),
    "close": act("reject", close="yes"),
    "rebase": act("rebase", onto="f" * 40),
    "conflict": act("rebase", onto="f" * 40, conflict="a.py"),
    "approve": act("approve"),
    "shipped": act("ship", outcome="shipped"),
    "proposed": act("ship", outcome="proposed"),
    "failed": act("ship", outcome="failed"),
    "unconfirmed": act("ship", outcome="unconfirmed"),
    "stop": act("stop"),
    "go": act("go"),
}
EVENTS: Final = WORK | JUDGES | DEEDS

# --- the oracle -------------------------------------------------------------------------------------------------------

MORE = r"(?:(?:go|extend|rounds) )"
CUT = r"(?:interrupted\+?|crash)"
HAND = r"(?:overload|auth|setup|budget|stuck|refusal|timeout|idle|memory|output|disk|breach)"
IDLE = r"(?:unchanged|red|no-reply)"
VAGUE = r"(?:inconclusive|no-reply|handover)"

REWRITTEN: Final = (
    (r"stop ((?:extend |rounds )*)go ", r"\1"),
    (rf"([RA])\.revise ({MORE}*)(answer|rounds) ", r"\1.spared \2\3 "),
)
"""A `go` takes back a `stop`, and a granted round takes back a revision; as often as there is one."""

TABLE: Final = (
    (rf"{MORE}*", "go I"),
    # acts
    (r".*stop (?:extend |rounds )*", "end stopped"),
    (rf".*close {MORE}*", "end not-accepted"),
    (rf".*(shipped|proposed) {MORE}*", r"end \1"),
    (r".*(?:failed|unconfirmed) ", "human ship"),
    (rf".*(?:failed|unconfirmed) {MORE}+", "ship"),
    (rf"(?:.* )?approve {MORE}*", "ship"),
    (rf".*offer {MORE}*", "human offer"),
    (rf".*(?:reject|conflict) {MORE}*", "go I +1"),
    (rf".*rebase {MORE}*", "go R +1"),
    (rf".*[RA]\.spared (?:{MORE}|answer )*", "go I +1"),
    (rf".*([IRA])\.\S+ (?:[a-z]+ )*answer {MORE}*", r"go \1"),
    # every leg
    (rf".*[IRA]\.(?:blocked|asks) {MORE}*", "human question"),
    (rf".*(?:[IRA]\.{CUT} ){{2}}[IRA]\.(interrupted|crash)\+? ", r"human \1"),
    (rf".*([IRA])\.{CUT} {MORE}*", r"go \1"),
    (rf".*([IRA])\.quota {MORE}*", r"wait \1"),
    (rf".*[IRA]\.({HAND}) ", r"human \1"),
    (rf".*([IRA])\.{HAND} {MORE}+", r"go \1"),
    # work
    (rf".*I\.(?:handover|unchanged|red) (?:I\.(?:{CUT}|quota|no-reply) |offer )*I\.handover ", "human max-legs"),
    (rf".*I\.handover {MORE}*", "go I"),
    (rf".*I\.(?:done|holds) {MORE}*", "go R"),
    (
        rf".*I\.interrupted\+ (?:I\.(?!red|unchanged|blocked|asks)\S+ |offer |answer |{MORE})*I\.unchanged {MORE}*",
        "go R",
    ),
    (rf".*(?:I\.{IDLE} (?:I\.(?:{CUT}|quota|handover) |offer )*){{2}}I\.({IDLE}) ", r"human \1"),
    (rf".*I\.{IDLE} {MORE}*", "go I"),
    # judges
    (rf".*R\.approve {MORE}*", "go A"),
    (rf".*A\.approve {MORE}*", "accepted"),
    (rf".*R\.revise (?:(?!reject |rebase |conflict )\S+ )*R\.revise {MORE}*", "human cap"),
    (rf".*R\.revise {MORE}*", "go I +1"),
    (rf".*A\.revise {MORE}*", "human cap"),
    (rf".*([RA])\.{VAGUE} (?:[RA]\.(?:{CUT}|quota) )*\1\.{VAGUE} ", "human inconclusive"),
    (rf".*([RA])\.{VAGUE} {MORE}*", r"go \1"),
)
REASONS: Final = {"unchanged": "no-change", "red": "check-red"}


def foretold(story: str) -> str:
    """Say what the table says of a story."""
    for pattern, instead in REWRITTEN:
        replaced = 1
        while replaced:
            story, replaced = re.subn(pattern, instead, story)
    found = next(((match, says) for row, says in TABLE if (match := re.fullmatch(row, story))), None)
    assert found is not None, f"no row fits: {story}"
    return " ".join(REASONS.get(word, word) for word in found[0].expand(found[1]).split())


def shown(step: rules.Next, receipts: tuple[Receipt, ...]) -> str:
    """Say a step in the words of the table."""
    match step:
        case rules.Go():
            risen = step.round - (receipts[-1].round if receipts else 1)
            return f"go {step.phase[0].upper()}" + f" +{risen}" * bool(risen)
        case rules.Wait():
            return f"wait {step.go.phase[0].upper()}"
        case rules.Human():
            return f"human {step.reason}"
        case rules.End():
            return f"end {step.outcome}"
    return "ship" if isinstance(step, rules.ShipIt) else "accepted"


# --- the world --------------------------------------------------------------------------------------------------------

ANYWHERE: Final = ("stop", "extend", "reject", "close")
FOLLOWS: Final = {
    "go": ("offer", *ANYWHERE),
    "wait": ANYWHERE,
    "human": ("go", "answer", *ANYWHERE),
    "human cap": ("go", "answer", "rounds", *ANYWHERE),
    "human offer": ("I.done", "I.unchanged", "I.crash", "I.no-reply", *ANYWHERE),
    "human ship": ("go", "approve", *ANYWHERE),
    "accepted": ("approve", *ANYWHERE),
    "ship": ("shipped", "proposed", "failed", "unconfirmed", "rebase", "conflict", "stop", "go"),
    "end stopped": ("go", "extend", "rounds", "reject", "close"),
    "end": (),
}
"""What people, agents and the world can do, given what comes next: the commands refuse the rest."""


def following(step: str) -> Iterator[str]:
    """Yield every word with which a story can go on."""
    kind, *rest = step.split()
    if kind in {"go", "wait"}:
        yield from (word for word in EVENTS if word.startswith(f"{rest[0]}."))
    for word in FOLLOWS.get(step, FOLLOWS[kind]):
        if word != "offer" or rest[0] == "I":
            yield word


def stories(words: tuple[str, ...], deep: int) -> Iterator[tuple[str, tuple[Receipt, ...], rules.Next]]:
    """Yield each story that goes on from `words` by up to `deep` receipts, with the receipts and what comes next."""
    receipts = told(*(EVENTS[word] for word in words), plan=PLAN)
    step = rules.next_leg(PLAN, receipts)
    yield "".join(f"{word} " for word in words), receipts, step
    if deep:
        for word in following(shown(step, receipts)):
            yield from stories((*words, word), deep - 1)


BEGINNINGS: Final = (
    "",
    "I.done",
    "I.done R.approve",
    "I.done R.approve A.approve approve",
    "I.done R.revise I.done R.revise",
    "I.done R.revise reject I.done R.revise",
    "I.done R.approve A.revise answer I.done R.revise",
    "I.interrupted+ I.crash",
    "I.unchanged I.quota I.unchanged",
    "I.done R.crash R.inconclusive R.crash",
    "I.handover I.no-reply",
    "I.red stop extend go",
)


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_every_story_goes_on_as_the_table_says(beginning: str) -> None:
    told_so_far = 0
    for story, receipts, step in stories(tuple(beginning.split()), 3):
        assert shown(step, receipts) == foretold(story), story
        told_so_far += 1
    assert told_so_far > 500


def test_every_story_of_three_keeps_what_never_bends() -> None:
    for story, receipts, step in stories((), 3):
        assert rules.next_leg(PLAN, list(receipts)) == step, story
        _sound(story, receipts, step)
        if shown(step, receipts) not in {"end shipped", "end proposed", "end not-accepted"}:
            paused = told(DEEDS["stop"], DEEDS["go"], plan=PLAN, before=receipts)
            assert shown(rules.next_leg(PLAN, paused), paused) == shown(step, receipts), story


WORDS: Final = ("I.done", "I.unchanged", "I.crash", "I.quota", "I.breach", "I.handover", "R.approve", "R.revise")
MORE_WORDS: Final = (*WORDS, "R.inconclusive", "R.asks", "R.no-reply", "A.approve", "A.revise", *DEEDS)


def test_no_list_of_receipts_however_strange_is_a_riddle() -> None:
    pairs = itertools.product(EVENTS, repeat=2)
    triples = itertools.product(MORE_WORDS, repeat=3)
    for words in itertools.chain(pairs, triples):
        receipts = told(*(EVENTS[word] for word in words), plan=PLAN)
        _sound(" ".join(words), receipts, rules.next_leg(PLAN, receipts))


def _sound(story: str, receipts: tuple[Receipt, ...], step: rules.Next) -> None:
    """Assert what holds of every answer: it can be carried out, and the round never falls."""
    order = step.go if isinstance(step, rules.Wait) else step
    if isinstance(order, rules.Go):
        assert order.phase in NAMES.values(), story
        assert order.round >= (receipts[-1].round if receipts else 1), story
        void = {receipt.leg for receipt in receipts if receipt.ended_by == "breach" or receipt.kind == "act"}
        assert not void & set(order.reads), story
    if isinstance(step, rules.Wait):
        assert step.until > receipts[-1].ended, story
    if isinstance(step, rules.Human):
        assert step.reason in rules.EXIT, story
        assert step.leg in {receipt.leg for receipt in receipts}, story


def test_the_stories_use_every_word_of_the_closed_lists() -> None:
    used = told(*EVENTS.values(), plan=PLAN)
    assert {receipt.ended_by for receipt in used} == {*ENDINGS, None}
    assert {receipt.verdict for receipt in used} == {*VERDICTS, None}
    assert {receipt.act for receipt in used} == {*ACTS, None}
    assert {receipt.status for receipt in used} == {"done", "blocked", None}
    assert {(len(set(receipt.checks)), receipt.tree == receipt.start_tree) for receipt in used} > {
        (1, False),
        (0, True),
    }


def test_every_row_of_the_table_is_reached() -> None:
    said = {foretold(story) for beginning in BEGINNINGS for story, _, _ in stories(tuple(beginning.split()), 2)}
    expected = {says for _, says in TABLE if "\\" not in says}
    assert expected <= said
    assert {f"human {reason}" for reason in FAILURES} <= said
