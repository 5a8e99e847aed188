"""What of a person's home a command needs to run at all: programs that PATH leads to, never settings or keys.

The home is empty inside, so whoever installed Python or node there would have neither. What is shown is a list of
known tool folders; of everything else in the home only what stands on PATH itself.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/opt", "/nix", "/snap")
_RUSTUP: Final = ("toolchains", "settings.toml", "update-hashes", "downloads", "tmp")
"""rustup makes the last three where they are not, before anything else, and fails where it may not."""
_KNOWN: Final = {
    ".local/bin": (
        *(".local/bin", ".local/lib", ".local/pipx/venvs", ".local/share/pipx/venvs", ".local/share/uv/tools"),
        *(".local/share/uv/python", ".local/share/mise/installs", ".local/share/claude/versions"),
    ),
    ".cargo/bin": (".cargo/bin", *(f".rustup/{name}" for name in _RUSTUP)),
    ".local/share/mise/shims": (".local/share/mise/installs", ".local/share/mise/shims"),
    ".asdf/shims": (".asdf/shims", ".asdf/installs", ".asdf/plugins"),
    ".volta/bin": (".volta/bin", ".volta/tools"),
    ".local/share/fnm": (".local/share/fnm/node-versions",),
    ".sdkman/candidates": (".sdkman/candidates",),
    **{
        name: (name,)
        for name in (
            *(".pyenv", ".rbenv/versions", ".nvm/versions", ".fnm/node-versions", ".bun/bin", ".deno/bin"),
            *(".npm-global", ".yarn/bin", ".opam", ".ghcup/bin", ".dotnet", "go/bin"),
        )
    },
}
"""By the folder that PATH leads into, in the home: what its programs are made of."""
_ENV: Final = {"PYENV_ROOT": ".pyenv", "RUSTUP_HOME": ".rustup", "NVM_DIR": ".nvm", "VOLTA_HOME": ".volta"}
"""Programs that look for their parts in HOME, which is another one inside, unless a variable says where they are."""


@lru_cache(maxsize=8)
def readable(path: str, home: Path) -> tuple[Path, ...]:
    """Return the real folders that programs on `path`, a PATH, need outside the system; none of them shows the home."""
    found: dict[Path, None] = {}
    for entry in (*path.split(os.pathsep), sys.prefix, sys.base_prefix):
        if entry.startswith("/"):
            for needed in _needed(Path(os.path.realpath(entry)), home):
                real = Path(os.path.realpath(needed))
                secret = real.is_relative_to(home) and not _known(real, home) and _hidden(real.relative_to(home))
                if os.access(real, os.R_OK) and not home.is_relative_to(real) and not _system(real) and not secret:
                    found[real] = None
    return tuple(path for path in found if not any(path != other and path.is_relative_to(other) for other in found))


@lru_cache(maxsize=8)
def variables(path: str, home: Path) -> Mapping[str, str]:
    """Return where programs on `path` have their parts, for those that are there."""
    homes = [home, *(found for entry in path.split(os.pathsep) if (found := _home(Path(entry))))]
    places = ((name, f"{found}/{place}") for name, place in _ENV.items() for found in reversed(homes))
    return {name: place for name, place in places if os.path.isdir(place)}  # also where nobody may look


def _home(entry: Path) -> Path | None:
    """Return in whose home a known tool folder lies: after `sudo`, PATH may lead into another one than the person's."""
    return next((home for home in entry.parents for place in _KNOWN if entry.is_relative_to(home / place)), None)


def _needed(entry: Path, home: Path) -> Iterator[Path]:
    owner = home if entry.is_relative_to(home) else _home(entry)
    if owner is not None:
        for place, parts in _KNOWN.items():
            if entry.is_relative_to(owner / place):
                yield from (owner / part for part in parts)
                return
    whole = entry.parent if (entry.parent / "pyvenv.cfg").is_file() else entry
    yield whole


def _known(path: Path, home: Path) -> bool:
    return any(path.is_relative_to(home / part) for parts in _KNOWN.values() for part in parts)


def _hidden(path: Path) -> bool:
    """Tell whether a folder of the home is one that programs keep their settings and keys in."""
    return path.parts[0].startswith(".") if path.parts else True


def _system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _SYSTEM)
