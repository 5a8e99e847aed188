"""What a file's name says about it: a secret, a cache, source. Names alone; no file is opened here.

Paths are relative, with `/`; a folder may end in one. Lists follow pitfalls rows 18 and 19.
"""

from fnmatch import fnmatchcase
from typing import Final

_CACHES: Final = frozenset(
    (  # noqa: SIM905  thirty lines of one word each would be no easier to read
        ".cache .coverage .dart_tool .DS_Store .eggs .eslintcache .gradle .hypothesis .mypy_cache .next .nox .nuxt "
        ".nyc_output .parcel-cache .pytest_cache .ruff_cache .svelte-kit .terraform .tox .turbo .vite __pycache__ "
        "_build build coverage dist htmlcov node_modules obj out playwright-report target test-results .venv venv"
    ).split()
)
_CACHED: Final = (
    *("*.egg-info", "*.pyc", "*.pyo", "*.o", "*.class", "*.log", "*.swp", "*.tmp", "*.tsbuildinfo", "*~"),
    ".coverage.*",
)
_UNWANTED: Final = frozenset(
    (  # noqa: SIM905  thirty lines of one word each would be no easier to read
        "node_modules .venv .tox .nox __pycache__ .pytest_cache .mypy_cache .ruff_cache .hypothesis .DS_Store "
        ".coverage .gradle .terraform"
    ).split()
)
_SECRETS: Final = (
    *(".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", "_netrc", ".pypirc", ".git-credentials", ".htpasswd"),
    *("credentials.json", "service-account*.json", ".pgpass"),
)
_EXAMPLES: Final = (".example", ".sample", ".template", ".dist", ".defaults")
_SOURCE: Final = frozenset(
    (  # noqa: SIM905  thirty lines of one word each would be no easier to read
        "bash c cc clj cpp cs css cxx dart ex exs fs go graphql h hpp hs html java jl js json jsx kt lua md ml mjs nix "
        "php pl proto ps1 py pyi r rb rs sass scala scss sh sql svelte swift tf toml ts tsx vue yaml yml zig"
    ).split()
)


def secret(path: str) -> bool:
    """Tell whether the file is one that usually holds a secret; an example of one is none."""
    name = path.rstrip("/").rpartition("/")[2].lower()
    return not name.endswith(_EXAMPLES) and any(fnmatchcase(name, pattern) for pattern in _SECRETS)


def cache(path: str) -> bool:
    """Tell whether the path is, or lies in, what tools make again by themselves."""
    parts = path.rstrip("/").split("/")
    return any(part in _CACHES for part in parts) or any(fnmatchcase(parts[-1], pattern) for pattern in _CACHED)


def unwanted(path: str) -> str:
    """Return the outermost installed or cached folder or file that the path lies in, or nothing."""
    parts = path.rstrip("/").split("/")
    found = next((at for at, part in enumerate(parts) if part in _UNWANTED or part.endswith(".pyc")), None)
    return "" if found is None else "/".join(parts[: found + 1])


def source(path: str) -> bool:
    """Tell whether the file looks as if somebody wrote it: work that must not vanish because it is ignored."""
    name = path.rpartition("/")[2]
    return not cache(path) and (name == "Makefile" or ("." in name and name.rpartition(".")[2].lower() in _SOURCE))
