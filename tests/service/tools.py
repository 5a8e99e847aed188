"""Actions that fit every client become calls of the tools which a request offers."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tests.service.conversation import Asked, Tool
from tests.service.script import Act, settled

Form = Literal["function", "custom", "shell", "local_shell", "apply_patch"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it goes out: arguments are a mapping or raw text; `form` is how the protocol writes it."""

    name: str
    arguments: dict[str, Any] | str
    form: Form = "function"
    namespace: str | None = None

    def text(self) -> str:
        """Return the arguments as they stand in the answer."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "read": ("Read", "read", "read_file"),
    "write": ("Write", "write", "write_file"),
    "edit": ("Edit", "edit", "edit_file"),
    "search": ("Grep", "search", "grep"),
    "run": ("Bash", "bash", "run", "exec_command", "shell_command", "shell"),
    "reply": ("StructuredOutput", "reply"),
}
"""The tools that do an action; of several that are offered, the first one here is called."""

PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("path", "file_path", "file", "filename"),
    "text": ("text", "content", "contents", "file_text"),
    "old": ("old", "old_string", "old_str", "old_text"),
    "new": ("new", "new_string", "new_str", "new_text"),
    "pattern": ("pattern", "query", "regex"),
    "command": ("command", "cmd", "commands"),
}
"""What the parts of an action are called in the schemas of tools: whatever a schema has of these is filled in."""

EDITOR: Final[Mapping[str, Callable[[Mapping[str, str]], dict[str, Any]]]] = {
    "read": lambda v: {"command": "view", "path": v["path"]},
    "write": lambda v: {"command": "create", "path": v["path"], "file_text": v["text"]},
    "edit": lambda v: {"command": "str_replace", "path": v["path"], "old_str": v["old"], "new_str": v["new"]},
}
"""The commands of Anthropic's text editor tool, which comes without a schema."""

_FOLDER: Final = re.compile(r"<cwd>([^<]+)</cwd>|[Ww]orking directory:\s*(\S+)|CWD:\s*(/\S+)")


def calls(act: Act, asked: Asked) -> Iterator[Call | str]:
    """Yield what an action is for the client that asks: calls, or text."""
    values = {name: settled(value, asked.prompt) for name, value in act.values.items()}
    if act.action == "say":
        yield values["text"]
    elif act.action == "call":
        tool = asked.tools.get(values["name"])
        yield Call(values["name"], values["value"], values["kind"], tool.namespace if tool else None)
    elif act.action == "reply":
        value = values["value"]
        tool = _tool("reply", asked)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield Call(tool.name, value, namespace=tool.namespace) if tool else text
    else:
        yield _call(act.action, values, asked)


def _tool(action: str, asked: Asked) -> Tool | None:
    return next((asked.tools[name] for name in NAMES[action] if name in asked.tools), None)


def _call(action: str, values: Mapping[str, str], asked: Asked) -> Call:
    tool = _tool(action, asked)
    if tool:
        return _filled(tool, values, asked)
    if action in EDITOR:
        editor = next((tool for tool in asked.tools.values() if tool.type.startswith("text_editor_")), None)
        if editor:
            return Call(editor.name, EDITOR[action](values))
    if action in {"write", "edit"} and (patched := _patched(action, values, asked)):
        return patched
    if action == "run":
        if "exec" in asked.tools:  # a cell of JavaScript that reaches the tools
            return _cell(f"text((await tools.exec_command({{cmd: {json.dumps(values['command'])}}})).output);")
        return Call("bash", {"command": values["command"]})
    return _call("run", {"command": _command(action, values)}, asked)


def _filled(tool: Tool, values: Mapping[str, str], asked: Asked) -> Call:
    """Fill the parameters that the schema of a tool has."""
    if tool.type == "shell":
        return Call("shell", {"commands": [values["command"]]}, "shell")
    if tool.type == "local_shell":
        return Call("local_shell", {"command": ["bash", "-lc", values["command"]]}, "local_shell")
    known = tool.schema.get("properties") or {}
    filled: dict[str, Any] = {}
    for part, value in values.items():
        name = next((name for name in PARAMETERS[part] if name in known), part)
        listed = known.get(name, {}).get("type") == "array"
        filled[name] = ["bash", "-lc", value] if listed else value
    if "file_path" in filled:  # Claude Code takes absolute paths only
        filled["file_path"] = _absolute(filled["file_path"], asked)
    for name in tool.schema.get("required") or ():
        if name not in filled and known.get(name, {}).get("type") == "string":
            filled[name] = "as the script says"
    return Call(tool.name, filled, namespace=tool.namespace)


def _absolute(path: str, asked: Asked) -> str:
    found = _FOLDER.search(asked.prompt())
    folder = next(filter(None, found.groups()), "") if found else ""
    return path if path.startswith("/") or not folder else f"{folder.rstrip('/')}/{path}"


def _patched(action: str, values: Mapping[str, str], asked: Asked) -> Call | None:
    """Write or edit by a patch, for clients that know nothing else."""
    tool = asked.tools.get("apply_patch")
    lines = (
        _lines("+", values["text"]) if action == "write" else _lines("-", values["old"]) + _lines("+", values["new"])
    )
    if tool and tool.type == "apply_patch":
        kind, diff = ("create_file", lines) if action == "write" else ("update_file", f"@@\n{lines}")
        return Call("apply_patch", {"type": kind, "path": values["path"], "diff": diff}, "apply_patch")
    head = f"*** Add File: {values['path']}\n" if action == "write" else f"*** Update File: {values['path']}\n@@\n"
    patch = f"*** Begin Patch\n{head}{lines}*** End Patch\n"
    if tool and tool.type == "custom":
        return Call("apply_patch", patch, "custom")
    if tool:
        return Call("apply_patch", {"input": patch})
    return _cell(f"text(await tools.apply_patch({json.dumps(patch)}));") if "exec" in asked.tools else None


def _cell(code: str) -> Call:
    return Call("exec", code, "custom")


def _lines(mark: str, text: str) -> str:
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


def _command(action: str, values: Mapping[str, str]) -> str:
    """Return the shell command that does an action, where no tool does."""
    path = shlex.quote(values.get("path", ""))
    if action == "read":
        return f"cat {path}"
    if action == "search":
        return f"git grep -n -e {shlex.quote(values['pattern'])}"
    if action == "write":
        return f"printf %s {shlex.quote(values['text'])} > {path}"
    code = f"import pathlib; p = pathlib.Path({values['path']!r}); "
    code += f"p.write_text(p.read_text().replace({values['old']!r}, {values['new']!r}, 1))"
    return f"python3 -c {shlex.quote(code)}"
