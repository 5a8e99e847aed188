"""Actions that fit every client become calls of the tools that it offers."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.service import Json, Turn, do, nonce, say
from tests.service.anthropic import Messages
from tests.service.conversation import Asked
from tests.service.protocol import Wire
from tests.service.responses import Responses
from tests.service.script import Act
from tests.service.tools import Call, calls

ACTIONS: Final = Turn(
    do.read("a.py"),
    do.write("a.py", "x\n"),
    do.edit("a.py", "x\n", "y\n"),
    do.search("x"),
    do.run("ls"),
    do.reply({"nonce": nonce}),
)

ADD: Final = "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch\n"
UPDATE: Final = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch\n"


def _tools(*described: str) -> Json:
    """Describe tools as a name and its parameters."""
    tools = []
    for called, *parameters in map(str.split, described):
        schema = {"properties": {name: {"type": "string"} for name in parameters}, "required": parameters}
        tools.append({"name": called, "input_schema": schema})
    return {"tools": tools}


OFFERS: Final[Mapping[str, tuple[Json, list[tuple[str, str]]]]] = {
    "relay's own": (
        _tools(
            "bash command", "read path", "write path content", "edit path old new", "search pattern", "reply status"
        ),
        [
            ("read", '{"path": "a.py"}'),
            ("write", '{"path": "a.py", "content": "x\\n"}'),
            ("edit", '{"path": "a.py", "old": "x\\n", "new": "y\\n"}'),
            ("search", '{"pattern": "x"}'),
            ("bash", '{"command": "ls"}'),
            ("reply", '{"nonce": "n1"}'),
        ],
    ),
    "Anthropic's own": (
        {"tools": [{"name": "bash", "type": "bash_20250124"}, {"name": "editor", "type": "text_editor_20250728"}]},
        [
            ("editor", '{"command": "view", "path": "a.py"}'),
            ("editor", '{"command": "create", "path": "a.py", "file_text": "x\\n"}'),
            ("editor", '{"command": "str_replace", "path": "a.py", "old_str": "x\\n", "new_str": "y\\n"}'),
            ("bash", '{"command": "git grep -n -e x"}'),
            ("bash", '{"command": "ls"}'),
            ("", '{"nonce": "n1"}'),
        ],
    ),
    "Claude Code's": (
        _tools(
            "Bash command description",
            "Read file_path",
            "Write file_path content",
            "Edit file_path old_string new_string",
            "StructuredOutput",
        ),
        [
            ("Read", '{"file_path": "/w/a.py"}'),
            ("Write", '{"file_path": "/w/a.py", "content": "x\\n"}'),
            ("Edit", '{"file_path": "/w/a.py", "old_string": "x\\n", "new_string": "y\\n"}'),
            ("Bash", '{"command": "git grep -n -e x", "description": "as the script says"}'),
            ("Bash", '{"command": "ls", "description": "as the script says"}'),
            ("StructuredOutput", '{"nonce": "n1"}'),
        ],
    ),
    "Codex's": (
        {
            "tools": [
                {"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {}}}},
                {"type": "custom", "name": "apply_patch"},
            ]
        },
        [
            ("exec_command", '{"cmd": "cat a.py"}'),
            ("apply_patch", ADD),
            ("apply_patch", UPDATE),
            ("exec_command", '{"cmd": "git grep -n -e x"}'),
            ("exec_command", '{"cmd": "ls"}'),
            ("", '{"nonce": "n1"}'),
        ],
    ),
    "Codex's by code": (
        {"input": [{"type": "additional_tools", "tools": [{"type": "custom", "name": "exec"}]}]},
        [
            ("exec", 'text((await tools.exec_command({cmd: "cat a.py"})).output);'),
            ("exec", f"text(await tools.apply_patch({json.dumps(ADD)}));"),
            ("exec", f"text(await tools.apply_patch({json.dumps(UPDATE)}));"),
            ("exec", 'text((await tools.exec_command({cmd: "git grep -n -e x"})).output);'),
            ("exec", 'text((await tools.exec_command({cmd: "ls"})).output);'),
            ("", '{"nonce": "n1"}'),
        ],
    ),
    "OpenAI's own": (
        {"tools": [{"type": "shell"}, {"type": "apply_patch"}]},
        [
            ("shell", '{"commands": ["cat a.py"]}'),
            ("apply_patch", r'{"type": "create_file", "path": "a.py", "diff": "+x\n"}'),
            ("apply_patch", r'{"type": "update_file", "path": "a.py", "diff": "@@\n-x\n+y\n"}'),
            ("shell", '{"commands": ["git grep -n -e x"]}'),
            ("shell", '{"commands": ["ls"]}'),
            ("", '{"nonce": "n1"}'),
        ],
    ),
}

PROMPT: Final = "<cwd>/w</cwd>\n<<<task n1\nIts nonce must be `n2`, says the task.\ntask n1>>>\n"


def _asked(body: Json) -> Asked:
    """Read a request that offers tools, in the protocol that it is in."""
    anthropic = "text_editor" in str(body) or "input_schema" in str(body)
    wire: Wire = Messages() if anthropic else Responses()
    said = [{"role": "user", "content": PROMPT}]
    return wire.asked({"messages": said} | body | {"input": [*said, *body.get("input", [])]})


@pytest.mark.parametrize("client", OFFERS)
def test_actions_become_calls_of_what_is_offered(client: str) -> None:
    body, expected = OFFERS[client]
    made = [part for act in ACTIONS.acts for part in calls(act, _asked(body))]
    assert [(part.name, part.text()) if isinstance(part, Call) else ("", part) for part in made] == expected


def _made(turn: Turn, body: Json | None = None) -> Any:  # noqa: ANN401 - a call or a text
    [act] = turn.acts
    [made] = calls(act, _asked(body or _tools("bash command")))
    return made


def test_a_tool_may_be_called_that_does_not_exist_and_with_what_is_no_json() -> None:
    assert _made(do.call("teleport", {"to": "moon"})) == Call("teleport", {"to": "moon"})
    assert _made(do.call("bash", '{"command": ')).text() == '{"command": '
    assert _made(do.call("exec", "1 + 1", kind="custom")) == Call("exec", "1 + 1", "custom")


def test_a_tool_in_a_namespace_is_called_with_it() -> None:
    body = {"tools": [{"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "look"}]}]}
    assert _made(do.call("look", {}), body).namespace == "mcp"


def test_values_may_be_made_from_what_the_request_says() -> None:
    assert _made(say(lambda prompt: f"{len(prompt)}")) == f"{len(PROMPT) + 1}"
    assert _made(do.run(lambda prompt: f"echo {nonce(prompt)}")).arguments == {"command": "echo n1"}
    given = json.loads(_made(do.reply(lambda prompt: {"nonce": nonce(prompt), "findings": [{"why": nonce}]})))
    assert given == {"nonce": "n1", "findings": [{"why": "n1"}]}
    assert _made(do.reply("no JSON")) == "no JSON"


def test_the_nonce_is_what_stands_before_anything_that_others_wrote() -> None:
    assert nonce(PROMPT) == "n1"
    assert nonce("Its `nonce` must be `n3`.") == "n3"
    assert nonce("none") == ""


def test_turns_are_put_together_from_texts_actions_and_turns() -> None:
    joined = Turn("one", do.run("ls") + say("two"), delay=1)
    assert [act.action for act in joined.acts] == ["say", "run", "say"]
    assert joined.but(stop="max_tokens") == Turn(joined, stop="max_tokens", delay=1)
    assert Turn(Act("say", {"text": "one"})) == say("one") == Turn("one")
