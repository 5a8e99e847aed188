"""Shell commands that come out the same whatever they are run on: they show nothing."""

import itertools
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

CONSTANT: Final = frozenset({":", "echo", "exit", "false", "kill", "printf", "return", "set", "sleep", "true"})
"""What a shell does by itself, the same in every folder."""
SHELLS: Final = frozenset({"bash", "command", "dash", "env", "exec", "nice", "sh", "time", "timeout", "zsh"})
"""What runs the command that follows it."""
JOINTS: Final = frozenset({";", "&", "&&", "|", "||", "(", ")", "{", "}", "!", "if", "then", "else", "elif", "fi"})
FILE_TEST: Final = re.compile(r"-[a-hkprstuwxGLNOS]|-nt|-ot|-ef")
"""How `test` looks at a file."""


def constant(command: str) -> bool:
    """Tell whether a shell command comes out the same whatever the tree is: `false`, `exit 1`, `test 1 = 2`.

    What cannot be told by looking at it is told by running it where there is no tree.
    """
    if re.search(r"[$`<>*?]", command):
        return False
    words = shlex.shlex(command.replace("\n", ";"), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    parts: list[list[str]] = [[]]
    try:
        for word in words:
            if word in JOINTS or set(word) <= set(";&|()"):
                parts.append([])
            else:
                parts[-1].append(word)
    except ValueError:  # a quote that is not closed: the shell will say so
        return False
    return all(_constant(part) for part in parts)


def _constant(words: Sequence[str]) -> bool:
    """Tell whether one simple command does nothing that depends on where it runs."""
    words = [*itertools.dropwhile(re.compile(r"\w+=").match, words)]
    name = Path(words[0]).name if words else ":"
    if name in SHELLS:
        rest = [word for word in words[1:] if not re.fullmatch(r"-\w+|[\d.]+[smh]?|\w+=.*", word)]
        inner = rest[0] if rest and any(re.fullmatch(r"-\w*c", word) for word in words) else shlex.join(rest)
        return bool(rest) and constant(inner)
    if name in {"test", "[", "[["}:
        return not any(FILE_TEST.fullmatch(word) for word in words[1:])
    return name in CONSTANT
