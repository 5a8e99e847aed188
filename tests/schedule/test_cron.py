"""A crontab keeps every line that is not Relay's, and the real daemon starts a real night by ours."""

import os
import subprocess
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.schedule import cron, script
from tests.schedule import machines, records
from tests.world import SAFETY, World

BLOCK = "# relay nightly begin 1a2b3c4d\n17 4 * * * /bin/sh /x.sh\n# relay nightly end 1a2b3c4d\n"
OTHER = BLOCK.replace("1a2b3c4d", "ffffffff")
MINE = "MAILTO=ada\n# mine\n0 5 * * 1 backup --date=$(date +\\%F)  \n"


@pytest.mark.parametrize("table", ["", MINE, OTHER, MINE + OTHER, "@reboot x\r\n\n\n# é\n"])
def test_what_others_wrote_is_as_it_was_after_coming_and_going(table: str) -> None:
    there = cron.merged(table, BLOCK, "1a2b3c4d")
    assert there == table + BLOCK
    assert cron.block(there, "1a2b3c4d") == BLOCK
    assert cron.merged(there + OTHER, BLOCK, "1a2b3c4d") == table + OTHER + BLOCK
    assert cron.without(there, "1a2b3c4d") == table


def test_a_last_line_without_an_end_gets_one() -> None:
    assert cron.merged("0 5 * * * x", BLOCK, "1a2b3c4d") == f"0 5 * * * x\n{BLOCK}"


@pytest.mark.parametrize("left", [0, 2])
def test_half_of_the_markers_is_refused_since_all_below_could_be_lost(left: int) -> None:
    lines = BLOCK.splitlines(keepends=True)
    with pytest.raises(RelayError, match="only a part of Relay's lines"):
        cron.without(MINE + lines[left] + MINE, "1a2b3c4d")


def test_the_line_is_one_that_any_cron_reads(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = world.folder / "50% of it's mine"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    ran = world.inside("--json", "schedule", "show", "--with", "cron", "--at", "5/15 4 * JAN mon-fri")
    assert ran.code == 0, ran
    [_, crontab] = [event for event in ran.events if event["type"] == "file"]
    [line] = [line for line in crontab["text"].splitlines() if not line.startswith("#")]
    assert line.startswith("5-59/15 4 * 1 1-5 /bin/sh ")
    assert "50\\% of it" in line
    assert "%" not in line.replace("\\%", "")


def test_a_backslash_which_no_two_crons_read_alike_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(world.folder / "a\\b"))
    ran = world.inside("schedule", "show", "--with", "cron")
    assert (ran.code, "has one" in ran.err) == (2, True), ran


NOTES = """#!/bin/sh
env >given; pwd >>given
echo said; echo also >&2
cat; tty || exit 0
"""
"""A night that writes down what it was given, into the folder where it is started."""


def _started(folder: Path) -> tuple[list[str], str]:
    """Start the script as cron would; return what its night was given, and the log."""
    night = folder / "a night"
    night.write_text(NOTES)
    night.chmod(0o755)
    job = records.job(folder, str(night))
    path = folder / "night.sh"
    path.write_bytes(script.text(job, ()))
    env = {"HOME": str(folder), "LOGNAME": "ada", "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
    subprocess.run(["/bin/sh", path], env=env, cwd="/", input=b"x", check=True, timeout=SAFETY)
    return (folder / "given").read_text(encoding="utf-8").splitlines(), Path(job.log).read_text(encoding="utf-8")


def test_the_script_gives_the_night_its_variables_and_nobody_elses_input(tmp_path: Path) -> None:
    given, log = _started(tmp_path)
    assert {f"PATH={os.environ['PATH']}", "LANG=C.UTF-8", "GIT_TERMINAL_PROMPT=0", "LOGNAME=ada"} <= set(given)
    assert given[-1] == str(tmp_path)
    assert log == "said\nalso\nnot a tty\n"


def test_keys_come_from_the_persons_own_file_which_runs_nothing(tmp_path: Path) -> None:
    text = "# keys\nKEY=a b$HOME`id`\nQUOTED=\"two words\"\nSINGLE='it'\nEMPTY=\nBAD-NAME=x\n1X=y\n\ntrue\nLAST=\"='é"
    (tmp_path / "env").write_text(text, encoding="utf-8")
    job = records.job(tmp_path, "env")
    (tmp_path / "night.sh").write_bytes(script.text(job, ()))
    subprocess.run(["/bin/sh", tmp_path / "night.sh"], check=True, timeout=SAFETY)
    given = Path(job.log).read_text(encoding="utf-8").splitlines()
    expected = {"KEY": "a b$HOME`id`", "QUOTED": "two words", "SINGLE": "it", "EMPTY": "", "LAST": "\"='é"}
    assert {f"{name}={value}" for name, value in expected.items()} <= set(given)
    assert not any(line.startswith(("BAD", "1X")) for line in given)
    assert script.variables(text) == (expected, [6, 7, 9])


def test_a_log_that_has_grown_begins_anew_and_the_one_before_is_kept(tmp_path: Path) -> None:
    job = records.job(tmp_path, "echo", "hello")
    (tmp_path / "night.sh").write_bytes(script.text(job, ()))
    for _ in range(2):
        subprocess.run(["/bin/sh", tmp_path / "night.sh"], check=True, timeout=SAFETY)
    assert Path(job.log).read_text() == "hello\nhello\n"
    Path(job.log).write_bytes(b"x" * (script.LOG + 1))
    subprocess.run(["/bin/sh", tmp_path / "night.sh"], check=True, timeout=SAFETY)
    assert Path(job.log).read_text() == "hello\n"
    assert Path(f"{job.log}.1").stat().st_size == script.LOG + 1


def test_words_of_the_command_reach_the_program_as_they_are(tmp_path: Path) -> None:
    words = (machines.ODD, "\\n", "a'b", "$(id)", "é", "")
    job = records.job(tmp_path / machines.ODD, "printf", "<%s>", *words)
    (tmp_path / "night.sh").write_bytes(script.text(job, ()))
    subprocess.run(["/bin/sh", tmp_path / "night.sh"], check=True, timeout=SAFETY)
    assert Path(job.log).read_text(encoding="utf-8") == "".join(f"<{word}>" for word in words)


TABLES = """
mount -t tmpfs t /run
mount -t tmpfs t /dev/shm
mount -t tmpfs t /var/spool/cron
mkdir -p /var/spool/cron/crontabs /etc/cron.d && chmod 1730 /var/spool/cron/crontabs
chgrp crontab /var/spool/cron/crontabs 2>/dev/null || true
mount -t tmpfs t /etc/cron.d
touch /etc/crontab && mount --bind /dev/null /etc/crontab
"""
"""An empty spool in the place of the machine's: nothing there is read, written or started."""


def test_the_real_crontab_takes_the_lines_and_gives_the_others_back(tmp_path: Path) -> None:
    machines.needs("crontab")
    world = World.simple(tmp_path / f"{machines.ODD} \\n")
    before = MINE + "* * * * 7 true"
    (world.folder / "mine").write_text(f"{before}\n")
    said = machines.alone(
        f"""{TABLES}
        crontab '../mine'
        $RELAY schedule install --with cron
        $RELAY schedule install --with cron --at @daily
        crontab -l
        echo ---
        $RELAY --json schedule status
        $RELAY schedule remove
        crontab -l
        """,
        world.root,
    )
    first, _, rest = said.partition("---\n")
    assert first.startswith(f"{before}\n# relay nightly begin ")
    assert first.count("relay nightly begin") == 1
    assert "\n0 0 * * * /bin/sh /" in first
    status, _, after = rest.partition("\n")
    assert '"armed": "active"' in status
    assert after == f"{before}\n"


def test_where_no_crontab_was_none_is_left(world: World) -> None:
    machines.needs("crontab")
    said = machines.alone(
        f"""{TABLES}
        $RELAY schedule install --with cron
        $RELAY schedule remove
        ls /var/spool/cron/crontabs
        """,
        world.root,
    )
    assert said == ""


def test_the_real_daemon_starts_a_night_at_its_time(tmp_path: Path) -> None:
    machines.needs("cron")
    faketime = machines.needs("faketime")
    world = World.simple(tmp_path / machines.ODD)
    machines.alone(
        f"""{TABLES}
        printf 'SHELL=/bin/bash\\nPATH=/nowhere\\n' | crontab -
        $RELAY schedule install --with cron
        # The clock of the daemon starts half a minute before, and runs fast; the night's own does not.
        {faketime} -f '@2026-12-01 04:16:30 x20' cron -f &
        count=0
        until ls .git/relay/nights/[0-9]*.json 2>/dev/null; do
          sleep 0.1; count=$((count + 1)); [ $count -lt 400 ] || {{ cat "$XDG_STATE_HOME"/relay/*.log; exit 9; }}
        done
        until grep -q '"ended": "' .git/relay/nights/[0-9]*.json; do
          sleep 0.1; count=$((count + 1)); [ $count -lt 400 ] || {{ cat "$XDG_STATE_HOME"/relay/*.log; exit 8; }}
        done
        """,
        world.root,
    )
    [night] = records.nights(world)
    assert (night["scheduled"], night["ended_by"]) == (True, "done")
