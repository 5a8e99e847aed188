"""A GitLab: the same hub, asked as GitLab is asked, and answering in its words."""

import re
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.forge.hub import Hub, Pull


class Lab(Hub):
    """Plays merge requests of the project `acme/tools/shop`; `refuses` is the status of all its answers, if any."""

    refuses = 0

    def answer(self, method: str, target: str, body: dict[str, Any], _token: str) -> tuple[int, Any]:
        """Answer one request as GitLab does."""
        parts = urlsplit(target)
        project, path = re.fullmatch(r"(?:/api/v4)?/projects/([^/]+)/merge_requests(.*)", parts.path).groups()  # type: ignore[union-attr]
        self.asked.append(f"{method} {path}")
        if self.refuses:
            return self.refuses, {"message": f"{self.refuses} Forbidden"}
        if unquote(project) != "acme/tools/shop":
            return 404, {"message": "404 Project Not Found"}
        if method == "GET" and not path:
            branch = parse_qs(parts.query)["source_branch"][0]
            return 200, [self._told(pull) for pull in reversed(self.pulls) if pull.head == branch]
        if method == "POST" and not path:
            if any(pull.head == body["source_branch"] and pull.state == "open" for pull in self.pulls):
                return 409, {"message": ["Another open merge request already exists for this source branch: !1"]}
            new = Pull(
                len(self.pulls) + 1,
                body["title"],
                body["description"],
                body["source_branch"],
                body["target_branch"],
                body["title"].startswith("Draft: "),
            )
            self.pulls.append(new)
            return 201, self._told(new)
        pull = self.pulls[int(re.findall(r"[0-9]+", path)[0]) - 1]
        if path.endswith("/merge"):
            pull.auto = "pipeline"
        elif path.endswith("/cancel_merge_when_pipeline_succeeds"):
            pull.auto = None
        elif method == "PUT":
            pull.title, pull.body = body.get("title", pull.title), body.get("description", pull.body)
            pull.state = "closed" if body.get("state_event") == "close" else pull.state
        return 200, self._told(pull)

    def _told(self, pull: Pull) -> dict[str, Any]:
        shown = self._shown(pull)
        return {
            "iid": pull.number,
            "web_url": f"https://gitlab.example.org/acme/tools/shop/-/merge_requests/{pull.number}",
            "state": "merged" if pull.merged_as else "opened" if pull.state == "open" else "closed",
            "sha": shown["head"]["sha"],
            "target_branch": pull.base,
            "source_project_id": 7,
            "target_project_id": 7,
            "merge_when_pipeline_succeeds": pull.auto is not None,
            "merge_commit_sha": pull.merged_as,
            "squash_commit_sha": None,
        }
