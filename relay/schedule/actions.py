"""A workflow of GitHub Actions (pitfalls.md, "GitHub Actions"): a fresh machine each night, so the ledger is carried.

Tracked by git, so it names no folder of this machine. The ledger travels in Actions' cache, the commits as
refs/relay/*; a spec that is done is remembered there, and a run that waits goes on from there.
"""

import shlex
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import git, repository
from relay.schedule import zones
from relay.schedule.job import MARK, Job

WHERE: Final = ".github/workflows/relay-nightly.yml"
HOURS: Final = 5.5
"""A hosted machine, and its token, live six hours."""

TEXT: Final = """\
# {mark}; commit it, and it starts nights from the default branch.
name: relay-nightly
on:
  schedule:
    - cron: "{at}"{zone}
  workflow_dispatch:
permissions:
  contents: write
  pull-requests: write
concurrency:
  group: relay-nightly
  cancel-in-progress: false
jobs:
  night:
    runs-on: ubuntu-latest
    timeout-minutes: {minutes}
    steps:
      - uses: actions/checkout@v5
        with:
          fetch-depth: 0
      - run: git switch -C "$GITHUB_REF_NAME"
      - run: git fetch origin '+refs/relay/*:refs/relay/*'
      - run: |
          git config user.name 'relay[bot]'
          git config user.email 'relay-bot@users.noreply.github.com'
      - uses: actions/cache@v4
        with:
          path: .git/relay
          key: relay-ledger-${{{{ github.run_id }}}}-${{{{ github.run_attempt }}}}
          restore-keys: relay-ledger-
      - uses: actions/setup-python@v6
        with:
          python-version: "3.13"
      - run: pip install phased-relay
{packages}\
      - run: relay nightly --scheduled
        env:
          GH_TOKEN: ${{{{ secrets.RELAY_APP_TOKEN || github.token }}}}
          GIT_TERMINAL_PROMPT: "0"
{keys}\
      - if: always()
        run: test -z "$(git for-each-ref refs/relay)" || git push origin '+refs/relay/*:refs/relay/*'
      - if: always()
        uses: actions/upload-artifact@v4
        with:
          name: relay-nights
          path: .git/relay/nights/*.html
          include-hidden-files: true
"""

KEYS: Final = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")


def texts(job: Job) -> dict[Path, bytes]:
    """Return the workflow."""
    if job.bare:
        raise RelayError("a bare repository has no checkout for a workflow", hint="--with systemd, or --with cron")
    zone = job.zone or zones.name(zones.machine())
    if not zone:
        text = "the zone of this machine has no name, and a workflow needs one"
        raise RelayError(text, hint="relay schedule install --with actions --zone Europe/Berlin")
    stated = "" if zone in {"UTC", "Etc/UTC"} else f'\n      timezone: "{zone}"'
    text = TEXT.format(
        mark=MARK,
        at=job.at,
        zone=stated,
        minutes=round(min(job.hours, HOURS) * 60),
        packages="".join(f"      - run: npm install --global {package}\n" for package in job.packages),
        keys="".join(f"          {key}: ${{{{ secrets.{key} }}}}\n" for key in KEYS),
    )
    return {Path(job.folder) / WHERE: text.encode()}


def entry(job: Job) -> str:
    """Return what goes into a table of others: nothing."""
    del job
    return ""


def stands(job: Job) -> str:
    """Return what stands in a table of others: nothing."""
    del job
    return ""


def unavailable() -> str:
    """Say why Actions cannot be had here: a file can always be written."""
    return ""


def enable(job: Job) -> list[str]:
    """Return the commands that are left to type, which commit this one file: what is not pushed starts nothing."""
    [wanted] = texts(job).values()
    there = git.blob(repository.discover(Path(job.folder)), "HEAD", WHERE) == wanted
    return [_typed(job, *(() if there else (f"add {WHERE}", f"commit -m 'Start the nights' -- {WHERE}")), "push")]


def disable(job: Job) -> list[str]:
    """Return the commands that are left to type: none where git has nothing of the workflow."""
    try:
        repo = repository.discover(Path(job.folder))
    except RelayError:
        return []
    if git.blob(repo, "HEAD", WHERE) is not None:
        return [_typed(job, f"commit -m 'Start no more nights' -- {WHERE}", "push")]
    staged = git.code(repo, "cat-file", "-e", f":{WHERE}") == 0
    todo = [_typed(job, f"rm -q --cached {WHERE}")] if staged else []
    if git.blob(repo, "refs/remotes/origin/HEAD", WHERE) is not None:
        todo.append(f"gh workflow disable {Path(WHERE).name}")
    return todo


def _typed(job: Job, *verbs: str) -> str:
    """Return git's commands as they are typed where the person is: the workflow lies at the top of the checkout."""
    at = "" if Path.cwd() == Path(job.folder) else f"-C {shlex.quote(job.folder)} "
    return " && ".join(f"git {at}{verb}" for verb in verbs)


def forget(job: Job) -> None:
    """Do nothing more."""
    del job


def armed(job: Job) -> str:
    """Say nothing: what runs elsewhere cannot be asked from here."""
    del job
    return ""


def log(job: Job) -> str:
    """Say how to read what the nights said."""
    del job
    return f"gh run list --workflow {Path(WHERE).name}"


def advice(job: Job) -> list[tuple[str, str]]:
    """Say what a fresh machine has not."""
    del job
    secrets = f"its keys are the repository's secrets {', '.join(KEYS)}, for pull requests RELAY_APP_TOKEN"
    public = (
        "in a public repository, pull requests of others can read the ledger, which lies in Actions' cache, "
        "and GitHub stops the nights after 60 days without a commit"
    )
    queue = 'entries of `relay queue add` stay on this machine; name specs that are committed: queue = "tasks/*.md"'
    return [(secrets, "gh secret set NAME"), (queue, ""), (public, "")]
