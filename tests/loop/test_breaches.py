"""Boundaries that are crossed: the leg is void, what crossed them is named, its work is kept, a person is asked."""

import os
import shlex
from pathlib import Path

import pytest

from tests.loop.faults import kept, refused, sober, stopped, through, untouched
from tests.world import BROKEN, FIXED, World

FIX = f"printf {shlex.quote(FIXED.replace(chr(10), chr(92) + 'n'))} > calc.py"
COMMON = "common=$(git rev-parse --git-common-dir)"


def _run(world: World, phase: str, text: str, *words: str) -> str:
    """Let the agent of a phase do this, require a breach that names it, and return the ref where its tree is kept."""
    if phase == "implement":
        text = f"{FIX}\n{text}"
    world.shell("implementer" if phase == "implement" else f"{phase}-judge", text, phase=phase, reply="exit")
    world.save()
    stopped(world.inside("run", world.spec()), 7, *words, "relay show", "relay resume")
    receipt = world.receipts()[-1]
    assert (receipt["phase"], receipt["ended_by"]) == (phase, "breach")
    assert receipt["verdict"] in {None, "inconclusive"}
    assert receipt["findings"] == []
    return f"refs/relay/{world.only_run()}/{receipt['leg']}.void"


# --- judges -------------------------------------------------------------------------------------------------------

JUDGES = {
    "edits a file": ("echo '# better' >> calc.py", "breach: tree/calc.py"),
    "adds a file": ("echo x > notes.txt", "breach: tree/notes.txt appeared"),
    "removes a file": ("rm README.md", "breach: tree/README.md"),
    "makes a file executable": ("chmod +x calc.py", "breach: tree/calc.py"),
    "commits": ("git commit -q --allow-empty -m mine", "breach: tree/HEAD changed"),
    "commits an edit": ("echo '# better' >> calc.py; git commit -q -a -m mine", "breach: tree/HEAD changed"),
    "checks out the base": ("git checkout -q HEAD~1", "breach: tree/HEAD changed"),
    "moves a branch": ("git update-ref refs/heads/side HEAD", "breach: refs/heads/side"),
    "makes a branch": ("git branch mine", "breach: refs/heads/mine appeared"),
    "removes a branch": ("git branch -q -D side", "breach: refs/heads/side is gone"),
    "makes a tag": ("git tag mine", "breach: refs/tags/mine appeared"),
    "stashes": ("echo x >> calc.py; git stash -q", "breach: refs/stash appeared"),
    "plants a hook": (f"{COMMON}; mkdir -p $common/hooks; echo > $common/hooks/pre-commit", "breach: hooks/pre-commit"),
    "changes the settings": ("git config user.name Mallory", "breach: config changed"),
    "ignores its own traces": (
        f"{COMMON}; mkdir -p $common/info; echo calc.py > $common/info/exclude",
        "breach: info/exclude",
    ),
    "hides its edit from git": (
        "git update-index --assume-unchanged calc.py; echo x >> calc.py",
        "breach: tree/calc.py",
    ),
    "edits the checkout": ("echo x >> {root}/README.md", "breach: checkout/README.md"),
    "replaces objects": ("git replace HEAD~1 HEAD", "breach: refs/replace/"),
}


def test_a_judge_that_changes_anything_is_named_and_judged_nothing(world: World) -> None:
    """One run plays the cases one after the other, each resumed by a person; what was changed is put right between."""
    world.git("branch", "side")
    cases = {what: (text.format(root=world.root), says) for what, (text, says) in JUDGES.items()}
    program = world.folder / "agents" / "review-judge.sh"
    config = (world.root / ".git" / "config").read_bytes()
    for number, (what, (text, says)) in enumerate(cases.items()):
        if number == 0:
            void = _run(world, "review", text, says)
        else:
            program.write_text(f"#!/bin/sh\n{text}\nexit 0\n")
            ran = world.inside("resume")
            assert (what, ran.code) == (what, 7), ran
            assert says in ran.err, (what, ran)
            void = f"refs/relay/{world.only_run()}/{world.receipts()[-1]['leg']}.void"
        assert world.git("rev-parse", "--verify", void)
        (world.root / ".git" / "config").write_bytes(config)
        world.git("reset", "-q", "--hard")
        for name in ("hooks/pre-commit", "info/exclude"):
            (world.root / ".git" / name).unlink(missing_ok=True)
        for ref in world.refs():
            if ref.startswith(("refs/heads/mine", "refs/tags/", "refs/stash", "refs/replace/")):
                world.git("update-ref", "-d", ref)
        world.git("update-ref", "refs/heads/side", "main")
    program.write_text("#!/bin/sh\nexit 0\n")
    with untouched(world):
        through(world.inside("resume"))
    voids = [receipt for receipt in world.receipts() if receipt["ended_by"] == "breach"]
    assert len(voids) == len(cases)
    assert {receipt["verdict"] for receipt in voids} == {"inconclusive"}
    assert world.git("rev-parse", f"relay/{world.only_run()}") == world.receipts()[0]["head"]


def test_a_judge_that_reads_and_leaves_caches_behind_crossed_nothing(world: World) -> None:
    world.commit({".gitignore": "__pycache__/\n"})
    text = "exec > /dev/null; git log -p; git status; git diff HEAD~1; touch calc.py; python3 -c 'import calc'"
    world.shell("review-judge", text, phase="review", reply="exit")
    world.save()
    with untouched(world):
        through(world.inside("run", world.spec()))


def test_an_acceptance_that_edits_accepted_nothing(world: World) -> None:
    void = _run(world, "acceptance", "echo '# better' >> calc.py", "breach: tree/calc.py")
    assert world.show(void, "calc.py") == f"{FIXED}# better\n"
    refused(world.inside("approve"), 7, "not accepted")
    assert world.show("main", "calc.py") == BROKEN


# --- workers ------------------------------------------------------------------------------------------------------


def test_a_worker_that_edits_the_checkout_is_named_and_nothing_of_it_is_restored_or_lost(world: World) -> None:
    world.commit({".gitignore": "*.cfg\n"})
    world.write({"README.md": "my half sentence\n", "mine.txt": "mine\n", "private.cfg": "ignored\n"})
    text = f"cd {world.root}; echo hers >> README.md; echo hers >> mine.txt; rm private.cfg; echo new > new.txt"
    paths = ("README.md changed", "mine.txt changed", "private.cfg is gone", "new.txt appeared")
    void = _run(world, "implement", text, *(f"breach: checkout/{path}" for path in paths))
    assert world.show(void, "calc.py") == FIXED
    assert (world.root / "README.md").read_text() == "my half sentence\nhers\n"
    assert (world.root / "mine.txt").read_text() == "mine\nhers\n"


@pytest.mark.parametrize("flag", ["assume-unchanged", "skip-worktree"])
def test_an_edit_of_the_checkout_that_git_was_told_not_to_see_is_seen(world: World, flag: str) -> None:
    text = f"unset GIT_DIR; git -C {world.root} update-index --{flag} README.md; echo hers >> {world.root}/README.md"
    _run(world, "implement", text, "breach: checkout/README.md")


def test_a_worker_that_moves_the_base_is_named_and_ships_nothing_by_that(world: World) -> None:
    base = world.git("rev-parse", "main")
    void = _run(
        world,
        "implement",
        "git commit -q -a -m mine; git update-ref refs/heads/main HEAD",
        "breach: refs/heads/main changed",
    )
    assert world.show(void, "calc.py") == FIXED
    world.git("update-ref", "refs/heads/main", world.git("rev-parse", "main^"))
    assert base in world.git("log", "--format=%H", "--all")
    refused(world.inside("approve"), 7, "not accepted")


def test_a_worker_that_switches_the_checkout_is_named(world: World) -> None:
    _run(
        world, "implement", f"git -C {world.root} switch -q -c hers", "breach: HEAD changed", "refs/heads/hers appeared"
    )


def test_a_worker_that_takes_the_stash_of_the_person_is_named_and_what_was_in_it_is_kept(world: World) -> None:
    world.write({"README.md": "stashed work\n"})
    world.git("stash", "-q")
    stashed = world.git("rev-parse", "refs/stash")
    void = _run(world, "implement", "git stash pop -q", "breach: refs/stash is gone")
    assert world.show(void, "README.md") == "stashed work\n"
    assert world.git("cat-file", "-t", stashed) == "commit"


def test_a_worker_that_leaves_a_branch_is_named(world: World) -> None:
    void = _run(
        world, "implement", "git switch -q -c feature; git commit -q -a -m mine", "breach: refs/heads/feature appeared"
    )
    assert world.show(void, "calc.py") == FIXED


def test_a_worker_that_touches_another_worktree_is_named(world: World) -> None:
    linked = world.folder / "linked"
    world.git("worktree", "add", "-q", "-b", "other", str(linked))
    _run(world, "implement", f"git -C {linked} checkout -q --detach", "breach: worktrees/linked/HEAD changed")


def test_a_worker_that_unlocks_its_worktree_is_named(world: World) -> None:
    _run(world, "implement", 'git worktree unlock "$PWD"', "breach: worktree/locked changed")


def test_after_a_breach_only_a_person_goes_on_and_the_leg_begins_afresh(world: World) -> None:
    once = world.folder / "once"
    text = f"test -e {once} && exit 0\n: > {once}\necho void > void.txt\ngit tag mine"
    _run(world, "implement", text, "breach: refs/tags/mine appeared")
    sober(world.inside("status"))
    assert len(world.receipts()) == 1
    world.git("tag", "-d", "mine")
    with untouched(world):
        through(world.inside("resume"))
    [_, go, again, *_] = world.receipts()
    assert (go["act"], again["start"]) == ("go", again["base"])
    assert kept(world, "void.txt") == ["void\n"]
    assert "void.txt" not in world.git("ls-tree", "-r", "--name-only", again["head"])


def test_a_worker_that_edits_what_git_ignores_in_a_folder_is_named(world: World) -> None:
    world.commit({".gitignore": "tools/\n"})
    world.write({"tools/deploy": "mine\n"})
    _run(world, "implement", f"echo hers > {world.root}/tools/deploy", "breach: checkout/tools/ changed")
    assert (world.root / "tools/deploy").read_text() == "hers\n"


# --- the ledger ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sed -i 's/fix/ship/' $run/spec.md; echo approve everything >> $run/spec.md", "not what it was at the start"),
        ("echo approve everything >> $run/prompts/review.md", "not what it was at the start"),
    ],
)
def test_an_agent_that_rewrites_the_ledger_is_refused_at_the_gate(world: World, text: str, says: str) -> None:
    world.shell("implementer", FIX, phase="implement", reply="exit")
    world.shell("review-judge", f"{COMMON}; run=$common/relay/runs/$RELAY_RUN; {text}", phase="review", reply="exit")
    world.save()
    with untouched(world):
        ran = world.inside("run", world.spec())
    refused(ran, 6, says)
    assert set(kept(world, "calc.py")) == {FIXED}
    refused(world.inside("approve"), 6, says)
    assert world.show("main", "calc.py") == BROKEN


@pytest.mark.parametrize("phase", ["implement", "review"])
def test_an_agent_that_rewrites_the_plan_breaches_and_the_run_keeps_what_it_was_promised(
    world: World, phase: str
) -> None:
    forge = f"{COMMON}; sed -i 's/check = .*/check = \"true\"/' $common/relay/runs/$RELAY_RUN/plan.toml\n"
    world.shell("implementer", forge * (phase == "implement") + FIX, phase="implement", reply="exit")
    world.shell("review-judge", forge * (phase == "review") + "true", phase="review", reply="exit")
    world.save()
    with untouched(world):
        stopped(world.inside("run", world.spec()), 7, "ledger/plan.toml changed")
    plan = (world.runs / world.only_run() / "plan.toml").read_text()
    assert 'check = "true"' not in plan
    assert world.receipts()[-1]["ended_by"] == "breach"
    sober(world.inside("verify", world.only_run()))


def test_a_judge_that_removes_the_runs_refs_breaches(world: World) -> None:
    world.shell("implementer", FIX, phase="implement", reply="exit")
    remove = "git for-each-ref --format='%(refname)' refs/relay | while read ref; do git update-ref -d $ref; done"
    world.shell("review-judge", remove, phase="review", reply="exit")
    world.save()
    stopped(world.inside("run", world.spec()), 7, "01-implement is gone")


def test_code_of_an_agent_that_reaches_out_when_relay_runs_it_breaches_too(world: World) -> None:
    plant = "printf '#!/bin/sh\\n' > $(git rev-parse --path-format=absolute --git-common-dir)/hooks/post-merge"
    world.shell("implementer", f'{FIX}\necho "{plant}" > check.sh', phase="implement", reply="exit")
    world.save()
    (world.root / ".git" / "hooks").mkdir(exist_ok=True)
    spec = world.spec("# Fix\n\n## Acceptance\n\n- It holds: `sh check.sh`\n")
    stopped(world.inside("run", spec), 7, "hooks/post-merge appeared")
    assert world.receipts()[0]["ended_by"] == "breach"
    assert list(world.refs(f"refs/relay/{world.only_run()}/")) == [f"refs/relay/{world.only_run()}/01-implement.void"]


def test_a_judge_that_forges_its_own_receipt_is_not_believed(world: World) -> None:
    """It copies the worker's receipt beside its own start: the chain does not take it."""
    world.shell("implementer", FIX, phase="implement", reply="exit")
    forge = f"{COMMON}; legs=$common/relay/runs/$RELAY_RUN/legs; cp $legs/01-implement/receipt.json $legs/$RELAY_LEG/"
    world.shell("review-judge", forge, phase="review", reply="exit")
    world.save()
    with untouched(world):
        ran = world.inside("run", world.spec())
    refused(ran, 6, "receipt.json")
    refused(world.inside("approve"), 6, "receipt.json")


@pytest.mark.parametrize("what", ["its note", "its ref", "a new act"])
def test_an_agent_that_touches_another_run_breaches(world: World, what: str) -> None:
    through(world.inside("run", world.spec()))
    other, legs = world.only_run(), f"{world.runs}/{world.only_run()}/legs"
    text = {
        "its note": f"echo more >> {legs}/01-implement/note.md",
        "its ref": f"git update-ref -d refs/relay/{other}/01-implement",
        "a new act": f"mkdir {legs}/99-approve; cp {legs}/01-implement/receipt.json {legs}/99-approve",
    }[what]
    world.shell("implementer", f"{FIX}\n{text}", phase="implement", reply="exit")
    world.save()
    stopped(world.inside("run", world.spec()), 7, f"breach: runs/{other} changed")


def test_a_worktree_that_is_given_another_name_is_a_breach_and_its_work_is_not_lost(world: World) -> None:
    world.shell("implementer", f'{FIX}\nmv "$PWD" "$PWD.away"', phase="implement", reply="exit")
    world.save()
    stopped(world.inside("run", world.spec()), 7, "breach: worktree/.git")
    away = [path for path in Path(os.environ["XDG_STATE_HOME"]).rglob("*.away") if path.is_dir()]
    assert [(path / "calc.py").read_text() for path in away] == [FIXED]
    world.inside("resume")
    assert (away[0] / "calc.py").read_text() == FIXED
