r"""A service of models on this machine, for tests: it speaks what Anthropic and OpenAI speak, and plays a script.

    script = {
        "phase `implement`": [do.read("calc.py"), do.edit("calc.py", "a - b\n", "a + b\n"), do.reply({...})],
        "phase `review`": [Fault("overloaded", times=2), do.reply({"verdict": "approve", "nonce": nonce})],
    }
    with Service(script) as service:
        anthropic.Anthropic(base_url=service.url)
        openai.OpenAI(base_url=f"{service.url}/v1")

Its parts: `script` is what tests write; `conversation` reads requests and chooses turns; `tools` fits actions to the
tools that are offered; `anthropic`, `responses` and `chat` are the protocols; `faults` is how vendors word errors;
`caching` counts what a cache of prompts would have saved; `desk` answers, `wire` is HTTP, `server` listens.
"""

from tests.service.caching import Cache, uncovered
from tests.service.conversation import Json
from tests.service.notebook import Request
from tests.service.script import Act, Fault, Hits, Script, Turn, Usage, do, nonce, say
from tests.service.server import Service
from tests.service.wire import Message

__all__ = [
    "Act",
    "Cache",
    "Fault",
    "Hits",
    "Json",
    "Message",
    "Request",
    "Script",
    "Service",
    "Turn",
    "Usage",
    "do",
    "nonce",
    "say",
    "uncovered",
]
