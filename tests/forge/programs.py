"""A `gh` and a `glab` that carry requests to the hub: what they read and print is what the real ones do.

Measured with gh 2.23: `--include` prints the status line, the headers and the body on stdout; a refusal prints them
too, says `gh: Bad credentials (HTTP 401)` on stderr and exits 1; without a login it exits 4 and prints no status.
"""

import stat
import sys
from pathlib import Path
from typing import Final

_PROGRAM: Final = """\
#!{python} -IS
import json, os, signal, sys, urllib.error, urllib.request

words = sys.argv[1:]
assert words[0] == "api" and "--include" in words, words
method = words[words.index("--method") + 1]
data = sys.stdin.buffer.read() if "--input" in words else None
with open({log!r}, "a") as log:
    log.write(f"{{method}} {{words[-1]}}\\n")
if os.path.exists({out!r}):
    print("To get started with GitHub CLI, please run:  gh auth login", file=sys.stderr)
    sys.exit(4)
request = urllib.request.Request({url!r} + "/" + words[-1], data=data, method=method)
request.add_header("Authorization", "token none")
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
try:
    answer = opener.open(request)
    status, body = answer.status, answer.read()
except urllib.error.HTTPError as error:
    status, body = error.code, error.read()
sys.stdout.write(f"HTTP/2.0 {{status}} OK\\r\\nContent-Type: application/json; charset=utf-8\\r\\n\\r\\n")
sys.stdout.write(body.decode())
sys.stdout.flush()
if status >= 300:
    print(f"{name}: {{json.loads(body).get('message')}} (HTTP {{status}})", file=sys.stderr)
    sys.exit(1)
"""


def write(folder: Path, name: str, url: str) -> Path:
    """Write the program into a folder for PATH; it notes what it was asked in `NAME.log`, and is out by `NAME.out`."""
    folder.mkdir(exist_ok=True)
    path, log, out = folder / name, folder / f"{name}.log", folder / f"{name}.out"
    path.write_text(
        _PROGRAM.format(python=sys.executable, name=name, url=url, log=str(log), out=str(out)), encoding="utf-8"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
