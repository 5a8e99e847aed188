"""A program of its own that hands one notice to apprise: `notify` starts it, and ends it when it takes too long.

It reads `{"urls", "title", "body"}` as JSON, so that no address, which holds secrets, stands in a list of processes.
It answers a line for each address as soon as it knows: the address's number, and `sent`, `refused` or `unknown`.
It knows nothing else of Relay.
"""

import json
import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor


def ring(number: int, url: str, title: str, body: str) -> None:
    """Send to one address, and say how that went."""
    import apprise  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an extra, and 200 ms

    one = apprise.Apprise()
    said = "unknown"
    if one.add(url):
        said = "sent" if one.notify(title=title, body=body) else "refused"
    os.write(1, f"{number} {said}\n".encode())


def main() -> None:
    """Ring at every address at once: one that does not answer holds up no other."""
    logging.disable()
    told = json.load(sys.stdin)
    with ThreadPoolExecutor(len(told["urls"])) as threads:
        for number, url in enumerate(told["urls"]):
            threads.submit(ring, number, url, told["title"], told["body"])


if __name__ == "__main__":
    main()
