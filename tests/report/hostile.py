"""Agents that fill every field they have with what would run, fetch, move or mislead, and the runs they made."""

import json
from pathlib import Path
from typing import Final

from tests.world import World

TITLE: Final = "taken over"
"""What a planted script would call the document."""


def texts(url: str) -> list[str]:
    """Return what must stay inert: each would change the title, or ask something of a server."""
    run = f"document.title='{TITLE}';fetch('{url}/fetched')"
    return [
        f"</pre></td></details></title></style></script><script>{run}</script>",
        f'<img src="{url}/img" onerror="{run}"><svg onload="{run}"><iframe src="{url}/frame"></iframe>',
        f"\"' onmouseover={run} autofocus onfocus={run} x='",
        f'<meta http-equiv="refresh" content="0;url={url}/refresh"><base href="{url}/">',
        f'<link rel=stylesheet href="{url}/link">',
        f"</style><style>@import url({url}/import);*{{background:url({url}/css)}}</style>",
        f'<a href="javascript:{run}">x</a> [x](javascript:{run}) <form action="{url}/form"><input autofocus>',
        "{{ 7 * 7 }}{% for x in y %} {{ ''.__class__ }}",
        "right\u202eto\u2066left\u2069 \u200bunseen\ufeff \x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J bell\x07",
        '<!-- --><![CDATA[ <plaintext> <xmp> <noscript><p title="</noscript><img src=x onerror=1>">',
    ]


def made(folder: Path, url: str) -> World:
    """Make two runs of such agents: one is sent back once and accepted, the other asks."""
    evil = texts(url)
    joined = " ".join(evil)
    name = f"<img src=x onerror=document.title='{TITLE}'>.py"
    world = World(folder, {"README.md": "x\n"})
    work = f"""
evil = json.loads({json.dumps(evil)!r})
joined = " ".join(evil)
write({{{name!r}: "\\n".join(evil) + "\\n" + "A" * 1_000_000 + "\\n", "turn.txt": str(turn)}})
reply(status="done", summary=joined, decisions=[{{"what": one, "why": one}} for one in evil], risks=evil, todo=evil,
      dropped=[{{"what": joined, "why": joined}}], claims=[{{"criterion": "c1", "how": joined}}])
"""
    judge = f"""
evil = json.loads({json.dumps(evil)!r})
joined = " ".join(evil)
same = {{"severity": "major", "path": {name!r}, "line": 1, "quote": evil[0]}}
found = [dict(same, title=one, why=one) for one in evil]
found.append(dict(same, severity="minor", title="long " * 5000, path=joined[:300], quote=joined, why=joined))
if turn == 1:
    reply(verdict="revise", summary=joined, findings=found)
else:
    reply(verdict="approve", summary=joined)
"""
    world.python("implementer", work, phase="implement", vendor="north")
    world.python("reviewer", judge, phase="review", vendor="south")
    world.approver("acceptance")
    world.save()
    spec = f"# {joined}\n\n{joined}\n\n## Acceptance\n\n- {evil[0]}: `test -f turn.txt`\n"
    ran = world.relay("run", world.spec(spec))
    assert ran.code == 0, ran
    asks = f"reply(status='blocked', summary='', question=' '.join(json.loads({json.dumps(evil)!r})))"
    world.python("implementer", asks, phase="implement", vendor="north")
    ran = world.relay("run", world.spec(spec, "asks.md"))
    assert ran.code == 4, ran
    return world
