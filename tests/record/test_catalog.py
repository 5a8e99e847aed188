"""The line-up of a run: where its phases come from, and everything that can be wrong between them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from relay.errors import Exit, RelayError
from relay.host import repository
from relay.record import catalog, config
from relay.terms import Act, Agent, Phase
from tests.world import World

DEFAULT = ("implement", "review", "acceptance")
LONG = ("plan", "plan-review", *DEFAULT)
AGENTS = {
    "implementer": Agent(name="implementer", backend="claude-code", vendor="anthropic"),
    "reviewer": Agent(name="reviewer", backend="codex", vendor="openai"),
    "second": Agent(name="second", backend="codex", vendor="openai"),
    "tidy": Agent(name="tidy", backend="command", vendor="mechanical", command=("true",)),
}


def _phases(world: World, config_: config.Config | None = None, *names: str) -> tuple[Phase, ...]:
    repo = repository.discover(world.root)
    return catalog.phases(repo, world.git("rev-parse", "HEAD"), config_ or config.Config(), names or None)


def _work(name: str, **more: Any) -> Phase:  # noqa: ANN401 - any field of a phase
    fields = {"kind": "work", "boundary": "implement", "agent": "implementer", "prompt": "p.md"} | more
    return Phase(name=name, **fields)


def _judge(name: str, **more: Any) -> Phase:  # noqa: ANN401 - any field of a phase
    fields = {"kind": "judge", "boundary": "verify-only", "agent": "reviewer", "prompt": "p.md", "back_to": "work"}
    return Phase(name=name, **(fields | more))


def _wrong(*phases: Phase, agents: Mapping[str, Agent] = AGENTS) -> RelayError:
    with pytest.raises(RelayError) as caught:
        catalog.check(phases, agents)
    assert caught.value.exit_code is Exit.USAGE
    assert caught.value.hint
    return caught.value


# --- where phases come from ---------------------------------------------------------------------------------------


def test_the_shipped_phases_line_up_in_both_lengths(tmp_path: Path) -> None:
    world = World(tmp_path)
    for names in (DEFAULT, LONG):
        phases = _phases(world, None, *names)
        catalog.check(phases, AGENTS)
        assert tuple(phase.name for phase in phases) == names


def test_the_shipped_phases_say_what_the_design_says(tmp_path: Path) -> None:
    phases = {phase.name: phase for phase in _phases(World(tmp_path), None, *LONG)}
    assert (phases["implement"].kind, phases["implement"].boundary) == ("work", "implement")
    assert phases["implement"].reads == ("spec", "plan?")
    assert phases["review"].differs_from == "implement"
    assert (phases["review"].withhold, phases["review"].rounds) == (("claims",), 3)
    assert (phases["acceptance"].withhold, phases["acceptance"].rounds) == (("claims",), 2)
    assert (phases["plan"].kind, phases["plan"].boundary) == ("work", "verify-only")
    assert (phases["plan-review"].differs_from, phases["plan-review"].back_to) == ("plan", "plan")
    assert {name for name, phase in phases.items() if phase.kind == "judge"} == {"review", "acceptance", "plan-review"}


def test_relay_toml_overrides_only_what_it_says(tmp_path: Path) -> None:
    override = config.PhaseOverride(agent="tidy", rounds=7)
    review = _phases(World(tmp_path), config.Config(phase={"review": override}))[1]
    assert (review.agent, review.rounds, review.withhold) == ("tidy", 7, ("claims",))


def test_a_phase_of_the_base_commit_goes_before_the_shipped_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    text = 'kind = "work"\nboundary = "implement"\nagent = "{}"\n'
    world.commit({"phases/implement.toml": text.format("top"), "prompts/implement.md": "top"})
    repo, head = repository.discover(world.root), world.git("rev-parse", "HEAD")
    assert _phases(world)[0].agent == "top"
    assert catalog.source(repo, head, "prompts", "implement.md") == (b"top", "prompts/implement.md")
    world.commit({".relay/phases/implement.toml": text.format("hidden")})
    assert _phases(world)[0].agent == "hidden"
    world.write({".relay/phases/implement.toml": text.format("uncommitted")})
    assert _phases(world)[0].agent == "hidden"


def test_a_phase_of_ones_own_needs_only_a_file(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit({".relay/phases/docs.toml": 'kind = "work"\nboundary = "implement"\nagent = "implementer"\n'})
    phases = _phases(world, None, "docs", "acceptance")
    assert phases[0].prompt == "docs.md"


def test_a_judge_goes_back_to_the_nearest_work_phase_before_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    judge = 'kind = "judge"\nboundary = "verify-only"\nagent = "reviewer"\n'
    world.commit({".relay/phases/look.toml": judge})
    phases = _phases(world, None, "plan", "look", "implement")
    assert phases[1].back_to == "plan"
    assert _phases(world, None, "plan", "implement", "look")[2].back_to == "implement"
    assert "`look` judges, but no work phase comes before it" in _wrong(*_phases(world, None, "look", "plan")).message


def test_a_phase_that_nobody_wrote_is_said_with_the_nearest(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit({".relay/phases/docs.toml": ""})
    with pytest.raises(RelayError, match="no phase `implemnt`, did you mean `implement`") as caught:
        _phases(world, None, "implemnt")
    assert "docs" in caught.value.hint


def test_an_override_of_a_phase_that_nobody_wrote_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    with pytest.raises(RelayError, match="no phase `reviw`, did you mean `review`"):
        _phases(world, config.Config(phase={"reviw": config.PhaseOverride(rounds=1)}))
    assert _phases(world, config.Config(phase={"plan": config.PhaseOverride(rounds=1)}))


def test_the_phase_file_of_the_design_is_read_whole() -> None:
    text = """
kind = "judge"                    # or "work"
boundary = "verify-only"          # or "implement"
agent = "reviewer"                # default line-up; relay.toml [phase.review] overrides
prompt = "review.md"
reads = ["spec", "implement"]     # spec, and notes of the newest sealed leg of these phases
withhold = ["claims"]
differs_from = "implement"        # another vendor; mechanical commands are exempt
back_to = "implement"
rounds = 3
max_legs = 4
context = 0.6
done = "verify"                   # or "trust"
evidence = "located"              # what a finding needs to block; or "confirmed"
minutes = 60
"""
    parsed = catalog.parse("review", text.encode(), "phases/review.toml")
    assert parsed == catalog.parse("review", catalog.builtin("phases", "review.toml"), "built-in")


def test_a_shipped_file_that_does_not_exist_is_a_key_error() -> None:
    for name in ("nothing.md", "../phases/plan.toml", "/etc/passwd", ""):
        with pytest.raises(KeyError):
            catalog.builtin("prompts", name)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("knd = 'work'", "`knd` is not a known key, did you mean `kind`?"),
        ("kind = 'wrk'", "`kind`: `wrk` is not one of work, judge, did you mean `work`?"),
        ("kind = 'work'\nboundary = 'implement'", "`agent` is missing"),
        ("kind = 'judge'\nboundary = 'implement'\nagent = 'a'", "a judge changes nothing"),
        ("kind = 'work'\nboundary = 'implement'\nagent = 'a'\nback_to = 'x'", "`back_to` is for judges"),
        ("kind = 'work'\nboundary = 'implement'\nagent = 'a'\nprompt = '../x.md'", "`prompt` is `../x.md`"),
        ("kind = 'work'\nboundary = 'implement'\nagent = 'a'\nwithhold = ['claim']", "did you mean `claims`?"),
        ("kind = 'work'\nboundary = 'implement'\nagent = 'a'\nrounds = 0", "`rounds` is 0"),
        ("kind = 'work'\nboundary = 'implement'\nagent = 'a'\nmax_legs = -1", "`max_legs` is -1"),
        ("kind = 'work'\nboundary = 'implement'\nagent = 'a'\ncontext = 1.5", "`context` is 1.5"),
        ("kind = 'work'\nboundary = 'implement'\nagent = 'a'\nminutes = nan", "`minutes` is nan"),
        ("kind = 'work'\nboundary = 'implement'\nagent = 'a'\nreads = 'spec'", "`reads`: expected `array`, got `str`"),
        ("schema = 9", "schema `9` is unknown"),
    ],
)
def test_a_phase_file_is_read_strictly(line: str, words: str) -> None:
    with pytest.raises(RelayError) as caught:
        catalog.parse("mine", line.encode(), ".relay/phases/mine.toml")
    assert caught.value.message.startswith("`.relay/phases/mine.toml`: ")
    assert words in caught.value.message


def test_an_override_is_held_to_the_same_rules(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match=r"phase\.review`: `rounds` is 0"):
        _phases(World(tmp_path), config.Config(phase={"review": config.PhaseOverride(rounds=0)}))


# --- what can be wrong between them -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*get_args(Act), "spec", "Review", "a b", "a/b", "", "-x", "x" * 41, "wörk"])
def test_some_names_cannot_be_a_phase(tmp_path: Path, name: str) -> None:
    assert "cannot be the name of a phase" in _wrong(_work(name)).message
    with pytest.raises(RelayError, match="cannot be the name of a phase"):
        _phases(World(tmp_path), None, name)


def test_a_run_needs_phases_each_of_them_once() -> None:
    assert "no phases" in _wrong().message
    assert "`work` stands twice" in _wrong(_work("work"), _work("work")).message


def test_a_phase_reads_only_what_runs_before_it() -> None:
    later = _wrong(_work("work", reads=("spec", "look")), _judge("look"))
    assert "phase `work` reads `look`, which does not run before it" in later.message
    assert "itself" not in later.message
    assert "reads `wrok`" in _wrong(_work("work"), _judge("look", reads=("wrok",))).message
    assert "did you mean `work`?" in _wrong(_work("work"), _judge("look", reads=("wrok",))).message
    assert "reads `work`" in _wrong(_work("work", reads=("work",))).message


def test_a_question_mark_makes_what_is_read_optional() -> None:
    catalog.check([_work("work", reads=("spec", "plan?"))], AGENTS)


@pytest.mark.parametrize("target", ["nowhere", "look", "later", "other"])
def test_a_judge_goes_back_to_a_work_phase_before_it_and_nowhere_else(target: str) -> None:
    lineup = (_work("work"), _judge("other"), _judge("look", back_to=target), _work("later"))
    assert f"`look` goes back to `{target}`, which is no work phase before it" in _wrong(*lineup).message


def test_agents_that_nobody_declares_are_all_named() -> None:
    error = _wrong(_work("work", agent="implementr"), _judge("look", agent="zoe"))
    assert "`work` wants `implementr`, `look` wants `zoe`, did you mean `implementer`?" in error.message
    assert error.hint == "relay init"


def test_two_agents_of_one_vendor_are_refused_unless_it_is_allowed() -> None:
    work = _work("work", agent="second")
    error = _wrong(work, _judge("look", differs_from="work"))
    assert "another vendor" in error.message
    assert "`openai`" in error.message
    catalog.check([work, _judge("look", differs_from="work", allow_same_vendor=True)], AGENTS)
    catalog.check([work, _judge("look")], AGENTS)
    catalog.check([_work("work"), _judge("look", differs_from="work")], AGENTS)


def test_what_is_mechanical_needs_no_second_vendor() -> None:
    for mine, theirs in (("tidy", "tidy"), ("tidy", "reviewer"), ("reviewer", "tidy")):
        catalog.check([_work("work", agent=theirs), _judge("look", agent=mine, differs_from="work")], AGENTS)


@pytest.mark.parametrize("other", ["gone", "look"])
def test_a_phase_differs_from_another_phase_of_the_run(other: str) -> None:
    error = _wrong(_work("work"), _judge("look", differs_from=other))
    assert f"must differ from `{other}`, which is no other phase of this run" in error.message
