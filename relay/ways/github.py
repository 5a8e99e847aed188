"""GitHub: the same few requests by `gh`, which has the person's login, or over its REST API with a token.

Sources: docs.github.com, "REST API endpoints for pull requests", and GraphQL `enablePullRequestAutoMerge`
and `disablePullRequestAutoMerge`.
"""

import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal
from urllib.parse import quote, urlsplit

from relay.errors import RelayError
from relay.host import clock
from relay.terms import Ship, Struct
from relay.ways import patience, said, transport
from relay.ways.base import RefusedError, UnknownError
from relay.ways.forge import Home, Proposal, commit, read

WAITS: Final = (1.0, 3.0)
"""Seconds between tries of a question that the service could not answer."""

_AUTO: Final = (
    "mutation($id: ID!, $how: PullRequestMergeMethod!) "
    "{ enablePullRequestAutoMerge(input: {pullRequestId: $id, mergeMethod: $how}) { clientMutationId } }"
)
_NO_AUTO: Final = "mutation($id: ID!) { disablePullRequestAutoMerge(input: {pullRequestId: $id}) { clientMutationId } }"
_TOKENS: Final = ("GH_TOKEN", "GITHUB_TOKEN")
_ENTERPRISE: Final = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")
_LOCAL: Final = re.compile(r"(?:localhost|127\.0\.0\.1|\[?::1\]?)(?::\d+)?")

Send = Callable[[str, str, Mapping[str, Any] | None], transport.Answer]
"""Ask once: method, path, body."""


class GitHub(Struct, frozen=True):
    """One repository on GitHub, or on a server of one's own; `owner` is whose branch is proposed, a fork's maybe."""

    home: Home
    ship: Ship
    owner: str

    def find(self, branch: str) -> list[Proposal]:
        """Return the pull requests from a branch, the newest first."""
        head = quote(f"{self.owner}:{branch}", safe="")
        found = self._ask("GET", f"/repos/{self.home.path}/pulls?head={head}&state=all&per_page=50")
        return read(found, lambda ones: [_proposal(one) for one in ones if one["head"]["ref"] == branch])

    def view(self, number: int) -> Proposal:
        """Return one pull request as it stands now."""
        return read(self._ask("GET", f"/repos/{self.home.path}/pulls/{number}"), _proposal)

    def create(self, title: str, body: str, branch: str, base: str) -> Proposal:
        """Open a pull request; one that is open already is returned, also where only a lost answer had opened it."""
        head = branch if self.owner == self.home.owner else f"{self.owner}:{branch}"
        fields = {"title": title, "body": body, "head": head, "base": base, "draft": self.ship.draft}
        problem: RelayError | None = None
        for wait in (*WAITS, None):
            try:
                return read(self._once("POST", f"/repos/{self.home.path}/pulls", fields), _proposal)
            except (RefusedError, UnknownError) as error:
                problem = error
            try:
                opened = [one for one in self.find(branch) if one.state == "open" and one.base == base]
            except (RefusedError, UnknownError) as error:
                raise UnknownError(f"{problem.message}; and then: {error.message}") from None
            if opened:
                return opened[0]
            if isinstance(problem, RefusedError) or wait is None:
                raise RefusedError(problem.message, hint=problem.hint)
            clock.pause(wait)
        raise AssertionError

    def update(self, number: int, title: str, body: str) -> None:
        """Say anew what a pull request is."""
        self._ask("PATCH", f"/repos/{self.home.path}/pulls/{number}", {"title": title, "body": body})

    def merge_when_ready(self, proposal: Proposal) -> None:
        """Turn auto-merge on; GitHub refuses where the repository does not allow it, or nothing stands in the way."""
        how = (self.ship.auto_merge or "merge").upper()
        self._mutate(_AUTO, {"id": proposal.id, "how": how})

    def close(self, proposal: Proposal) -> None:
        """Close it; GitHub turns auto-merge off then, and is told to where it does not."""
        body = {"state": "closed"}
        if read(self._ask("PATCH", f"/repos/{self.home.path}/pulls/{proposal.number}", body), _proposal).armed:
            self._mutate(_NO_AUTO, {"id": proposal.id})

    def _mutate(self, query: str, variables: Mapping[str, str]) -> None:
        answer = self._ask("POST", "graphql", {"query": query, "variables": variables})
        errors = read(answer, lambda one: [str(error["message"]) for error in one.get("errors") or ()])
        if errors:
            raise RefusedError(said.line("; ".join(errors)))

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Ask what may be asked twice, until there is an answer; all tries together take no longer than one may."""
        with patience.until(clock.monotonic() + transport.SECONDS):
            for wait in (*WAITS, None):
                try:
                    return self._once(method, path, body)
                except UnknownError:
                    if wait is None or patience.rest() <= wait:
                        raise
                    clock.pause(wait)
        raise AssertionError

    def _once(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - JSON
        answer = self._send()(method, path, body)
        if answer.status in range(200, 300):
            return answer.json
        words = _words(answer)
        where = f"{self.home.path} on {self.home.host}"
        match answer.status:
            case 401:
                hint = "gh auth login, or set GH_TOKEN to a token that is valid"
                raise RefusedError(f"GitHub knows no such login (401): {words}", hint=hint)
            case 403 | 429:
                hint = "the token needs to write contents and pull requests"
                raise RefusedError(f"GitHub forbids it for {where} ({answer.status}): {words}", hint=hint)
            case 301 | 307 | 308:  # followed by nobody: a token goes to the address it is for
                hint = f"give its remote its new address: git remote set-url {shlex.quote(self.ship.remote)} URL"
                raise RefusedError(f"GitHub has {where} elsewhere now ({answer.status}): {words}", hint=hint)
            case 404:
                hint = "see [ship] remote, and whether the token may see it"
                raise RefusedError(f"GitHub has no {where}, or hides it (404): {words}", hint=hint)
            case status if status >= 500:  # noqa: PLR2004 - HTTP's own
                raise UnknownError(f"GitHub could not answer ({status}): {words}")
            case _:
                raise RefusedError(f"GitHub refused it ({answer.status}): {words}")

    def _send(self) -> Send:
        """Choose the means: `ship.api` by a token; else `gh` where it is; else the API by a token."""
        program = None if self.ship.api else shutil.which("gh")
        if program is not None:
            return lambda method, path, body: transport.program(program, self.home.host, method, path, body)
        token = transport.token(
            (*_TOKENS, *_ENTERPRISE) if self.home.host == "github.com" or self.ship.api else _ENTERPRISE
        )
        if token is None:
            raise RefusedError(
                "there is neither `gh` nor a token, so GitHub cannot be asked", hint="gh auth login, or set GH_TOKEN"
            )
        base = api(self.home, self.ship)
        return lambda method, path, body: transport.http(_address(base, path), token, method, body)


def api(home: Home, ship: Ship) -> str:
    """Return the address of the REST API: as `ship.api` says, or where GitHub and its servers have it."""
    if ship.api:
        return ship.api.rstrip("/")
    return "https://api.github.com" if home.host == "github.com" else f"https://{home.host}/api/v3"


def check_api(ship: Ship) -> None:
    """Refuse an address that would send a token in the open."""
    parts = urlsplit(ship.api or "https://x")
    if parts.scheme != "https" and not (parts.scheme == "http" and _LOCAL.fullmatch(parts.netloc)):
        raise RelayError(f"`ship.api`: `{ship.api}` is no https address", hint='api = "https://HOST/api/v3"')


def _address(base: str, path: str) -> str:
    return f"{base.removesuffix('/v3')}/graphql" if path == "graphql" else f"{base}{path}"


def _proposal(one: Mapping[str, Any]) -> Proposal:
    merged, made = bool(one.get("merged") or one.get("merged_at")), one.get("merge_commit_sha")
    state: Literal["open", "merged", "closed"] = "merged" if merged else "open" if one["state"] == "open" else "closed"
    return Proposal(
        number=int(one["number"]),
        id=str(one.get("node_id", "")),
        url=said.line(one["html_url"]),
        state=state,
        head=commit(one["head"]["sha"]),
        base=said.line(one["base"]["ref"]),
        merged_as=commit(made) if merged and made else None,
        armed=bool(one.get("auto_merge")),
    )


def _words(answer: transport.Answer) -> str:
    """Return GitHub's own words, with what it says of each field."""
    told = answer.json if isinstance(answer.json, dict) else {}
    errors = told.get("errors")
    listed = errors if isinstance(errors, list) else []
    more = [str(one.get("message") or one.get("code") or one) for one in listed if isinstance(one, dict)]
    return said.line("; ".join(filter(None, [str(told.get("message", "")), *more])) or answer.text) or "no words"
