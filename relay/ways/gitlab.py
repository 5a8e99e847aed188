"""GitLab, by `glab`, which has the person's login. Source: docs.gitlab.com, "Merge requests API"."""

import shutil
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

from relay.terms import Ship, Struct
from relay.ways import said, transport
from relay.ways.base import RefusedError, UnknownError
from relay.ways.forge import Home, Proposal, commit, read


class GitLab(Struct, frozen=True):
    """One repository on GitLab, or on a server of one's own."""

    home: Home
    ship: Ship

    def find(self, branch: str) -> list[Proposal]:
        """Return the merge requests from a branch, the newest first."""
        found = self._ask("GET", f"?source_branch={quote(branch, safe='')}&state=all&per_page=50")
        return read(found, lambda ones: [_proposal(one) for one in ones if one["sha"] and _at_home(one)])

    def view(self, number: int) -> Proposal:
        """Return one merge request as it stands now."""
        return read(self._ask("GET", f"/{number}"), _proposal)

    def create(self, title: str, body: str, branch: str, base: str) -> Proposal:
        """Open a merge request; one that is open already is returned."""
        fields = {
            "title": f"Draft: {title}" if self.ship.draft else title,
            "description": body,
            "source_branch": branch,
            "target_branch": base,
            "squash": self.ship.auto_merge == "squash",
        }
        try:
            return read(self._ask("POST", "", fields), _proposal)
        except (RefusedError, UnknownError) as error:
            try:
                opened = [one for one in self.find(branch) if one.state == "open" and one.base == base]
            except (RefusedError, UnknownError):
                raise error from None
            if opened:
                return opened[0]
            raise

    def update(self, number: int, title: str, body: str) -> None:
        """Say anew what a merge request is."""
        self._ask("PUT", f"/{number}", {"title": title, "description": body})

    def merge_when_ready(self, proposal: Proposal) -> None:
        """Ask GitLab to merge it once its pipeline succeeds."""
        self._ask("PUT", f"/{proposal.number}/merge", {"merge_when_pipeline_succeeds": True, "sha": proposal.head})

    def close(self, proposal: Proposal) -> None:
        """Close it; GitLab ends its own waiting to merge it then, and is told to where it does not."""
        now = read(self._ask("PUT", f"/{proposal.number}", {"state_event": "close"}), _proposal)
        if now.armed:
            self._ask("POST", f"/{proposal.number}/cancel_merge_when_pipeline_succeeds")

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - JSON
        program = shutil.which("glab")
        if program is None:
            raise RefusedError(
                "GitLab is asked by `glab`, which is not here", hint="install glab, then: glab auth login"
            )
        full = f"projects/{quote(self.home.path, safe='')}/merge_requests{path}"
        answer = transport.program(program, self.home.host, method, full, body)
        if answer.status in range(200, 300):
            return answer.json
        words = answer.json.get("message") or answer.json.get("error") if isinstance(answer.json, dict) else answer.text
        problem = f"GitLab answered {answer.status} for {self.home.path} on {self.home.host}: {said.line(words)}"
        if answer.status >= 500:  # noqa: PLR2004 - HTTP's own
            raise UnknownError(problem)
        raise RefusedError(problem, hint="glab auth login" if answer.status == 401 else "")  # noqa: PLR2004 - as above


def _at_home(one: Mapping[str, Any]) -> bool:
    """Tell whether the branch is the project's own: one of a fork may have the same name."""
    return one.get("source_project_id") == one.get("target_project_id")


def _proposal(one: Mapping[str, Any]) -> Proposal:
    states: dict[str, Literal["open", "merged", "closed"]] = {"opened": "open", "locked": "open", "merged": "merged"}
    merged = one.get("merge_commit_sha") or one.get("squash_commit_sha")
    return Proposal(
        number=int(one["iid"]),
        id=str(one["iid"]),
        url=said.line(one["web_url"]),
        state=states.get(str(one["state"]), "closed"),
        head=commit(one["sha"]),
        base=said.line(one["target_branch"]),
        merged_as=commit(merged) if merged else None,
        armed=bool(one.get("merge_when_pipeline_succeeds")),
    )
