"""Taking secrets out: known ones in every dress, others by their shape, whatever the pieces; and nothing else.

Every secret here is put together when the test runs, so that none stands in the repository.
"""

import base64
import hashlib
import json
import random
import string
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from relay.host import redact
from tests.world import CHECKOUT

DRAWN = random.Random(7)  # noqa: S311  the same every time


def drawn(size: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Return letters drawn by lot, of each kind at least one."""
    kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
    first = [DRAWN.choice(kind) for kind in kinds if set(kind) <= set(letters)]
    return "".join([*first, *DRAWN.choices(letters, k=size - len(first))])


def pem(lines: int = 20) -> str:
    body = "\n".join(drawn(64) for _ in range(lines))
    return "\n".join(
        ["-----BEGIN RSA " + "PRIVATE KEY-----", body, drawn(30) + "==", "-----END RSA " + "PRIVATE KEY-----"]
    )


def jwt() -> str:
    head, claims = (
        base64.urlsafe_b64encode(text).rstrip(b"=").decode() for text in (b'{"alg":"HS256"}', b'{"sub":"1234"}')
    )
    return ".".join([head, claims, drawn(43)])


SHAPES = [
    ("aws-key", "AKIA" + drawn(16, string.ascii_uppercase + string.digits)),
    *(("github-token", f"gh{letter}_{drawn(36)}") for letter in "pousr"),
    ("github-token", "github_" + f"pat_{drawn(22)}_{drawn(59)}"),
    ("gitlab-token", "glp" + f"at-{drawn(20)}"),
    ("anthropic-key", "sk-" + f"ant-api03-{drawn(90)}-{drawn(6)}AA"),
    ("openai-key", "sk-" + f"proj-{drawn(40)}_{drawn(40)}"),
    ("openai-key", "sk-" + drawn(48)),
    ("slack-token", "xo" + f"xb-{drawn(12, string.digits)}-{drawn(12, string.digits)}-{drawn(24)}"),
    ("google-key", "AI" + f"za{drawn(35)}"),
    ("package-token", "np" + f"m_{drawn(36)}"),
    ("stripe-key", "sk_" + f"live_{drawn(24)}"),
    ("jwt", jwt()),
    ("private-key", pem()),
]
AROUND = ["{}", "a {} b", '"{}"', "\x1b[32m{}\x1b[0m", "x={}&y=1", "\n{}\n", "'{}',", "key:{}"]


@pytest.mark.parametrize(("name", "secret"), SHAPES, ids=[f"{name}-{at}" for at, (name, _) in enumerate(SHAPES)])
def test_a_known_shape_is_taken_out_whatever_stands_around_it(name: str, secret: str) -> None:
    redactor = redact.Redactor({})
    for around in AROUND:
        said = around.format(secret)
        for text, back in ((said, str), (json.dumps({"a": said}), lambda text: json.loads(text)["a"])):
            got = back(redactor.text(text))
            assert f"[redacted {name}]" in got, (around, got)
            assert max(len(part) for part in secret.split("-")) > 12
            assert not leaked(secret, got), (around, got)


def leaked(secret: str, text: str) -> bool:
    """Tell whether twelve letters of the secret in a row are in the text."""
    words = [secret[at : at + 12] for at in range(len(secret) - 11)]
    return any(word in text for word in words if "PRIVATE" not in word and "BEGIN" not in word)


def dresses(value: str) -> Iterator[str]:
    raw = value.encode()
    yield value
    yield json.dumps({"env": value})
    yield json.dumps({"text": json.dumps({"env": value})})
    yield json.dumps([value], ensure_ascii=False)
    yield f"https://host.example/?a={quote(value, safe='')}&b={quote_plus(value)}#{quote(value)}"
    for before in (b"", b"u", b"us", b"user:"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(before + raw + b"\n").decode()


@pytest.mark.parametrize(
    "value",
    ["correct horse battery", 'pa"ss\\wo/rd+=?&', "grün\tund\nblau", "n0t-a-shape", "Kf9" * 20, "line one\nline two\n"],
)
def test_a_secret_that_was_given_is_taken_out_in_every_dress(value: str) -> None:
    redactor = redact.Redactor({"DB": value})
    for said in dresses(value):
        got = redactor.text(f"before {said} after")
        assert "[redacted DB]" in got, said
        assert value not in got
        assert got.startswith("before ")
        assert got.endswith(" after")
        if said.startswith(("{", "[")):
            assert json.loads(redactor.text(said)) != json.loads(said)


def test_an_escape_before_a_secret_stays_an_escape() -> None:
    redactor = redact.Redactor({"A": "not-a-shape-1", "B": "x"})
    for text in (json.dumps({"a": "\not-a-shape-1 and x"}), json.dumps({"a": "\\not-a-shape-1"})):
        assert json.loads(redactor.text(text)) != json.loads(text)


@pytest.mark.parametrize(
    "said",
    [
        'API_TOKEN="{}"',
        "export SERVICE_SECRET={}",
        '  "client_secret": "{}",',
        "password: {}",
        "Authorization: Bearer {}",
        "x-api-key: {}",
        "aws_secret_access_key = {}",
        '{{\\"token\\": \\"{}\\"}}',
        "https://u:{}@host.example/x",
        "postgres://app:{}@127.0.0.1:5432/db",
    ],
)
def test_a_value_drawn_by_lot_is_taken_out_where_its_name_says_secret(said: str) -> None:
    redactor = redact.Redactor({})
    for secret in (drawn(20), drawn(40), drawn(32, string.digits + "abcdef"), f"{drawn(18)}!$%^#x"):
        got = redactor.text(said.format(secret))
        assert not leaked(secret, got), got
        assert "[redacted " in got
        assert redactor.text(got) == got


def test_what_is_no_secret_stays() -> None:
    sha1, sha256 = hashlib.sha1(b"x", usedforsecurity=False).hexdigest(), hashlib.sha256(b"x").hexdigest()
    harmless = [
        f"commit {sha1}\nparent {sha256}",
        f"token: {sha1}\nsecret={sha256} api_key: sha256:{sha256}",
        json.dumps({"prompt_sha256": sha256, "output_sha256": sha256, "head": sha1, "token": sha1}),
        f'integrity "sha512-{base64.b64encode(hashlib.sha512(b"x").digest()).decode()}"',
        "token = tokenizer.next_token(stream)\nsecret_key = settings.SECRET_KEY\npassword=getpass('Password: ')",
        "password: correct-horse-battery-staple-of-somebody",
        "usage: input_tokens=123456789012 cached_tokens: 42",
        "GITHUB_TOKEN=${GITHUB_TOKEN_FROM_VAULT_2} API_KEY=$API_KEY_2_OF_THE_SERVICE",
        "http://host.example:8080/path@v1 ssh://git@github.com/x.git https://u:${PW}@h",
        "task-force disk-0123456789abcdef0123456789abcdef sk-learn risk-averse-but-long-kebab-name-indeed",
        "eyJ is how it begins; AKIA; ghp_; -----BEGIN CERTIFICATE-----",
        "261129-0230-fix-login 01-implement refs/relay/261129-0230-fix-login/01-implement",
    ]
    redactor = redact.Redactor({"SHORT": "abc", "KEY": "not-in-there-1"})
    for text in harmless:
        assert redactor.text(text) == text


def test_the_sources_of_this_repository_hold_no_secret() -> None:
    redactor = redact.Redactor({})
    for path in (*CHECKOUT.glob("relay/**/*.py"), *CHECKOUT.glob("*.md"), *CHECKOUT.glob("prompts/*")):
        if path.name != Path(redact.__file__).name:
            assert [(path, span) for span in redactor.spans(path.read_bytes())] == []


def mixture() -> bytes:
    """Return text with everything in it, also what is no text."""
    parts = [f"{around}\n".format(secret).encode() for around in AROUND[:4] for _, secret in SHAPES]
    parts += [b"a = 1\r\n" * 20, DRAWN.randbytes(200), b"token: " + drawn(30).encode() + b"\n", b"x" * 500]
    parts += [f"{said}\n".encode() for said in dresses("two\nlines of it")]
    DRAWN.shuffle(parts)
    return b"".join(parts)


def test_twice_is_as_good_as_once() -> None:
    redactor = redact.Redactor({"TWO": "two\nlines of it"})
    for _ in range(5):
        once = redactor.bytes(mixture())
        assert redactor.bytes(once) == once


def cut(data: bytes, most: int) -> Iterator[bytes]:
    while data:
        size = DRAWN.randint(1, most)
        yield data[:size]
        data = data[size:]


@pytest.mark.parametrize("most", [1, 7, 300, 5000])
def test_pieces_give_what_the_whole_gives(most: int) -> None:
    redactor = redact.Redactor({"TWO": "two\nlines of it"})
    data = mixture()[: 4000 if most == 1 else None]
    stream = redact.Stream(redactor)
    got = b"".join([*(stream.feed(piece) for piece in cut(data, most)), stream.end()])
    assert got == redactor.bytes(data)


def test_a_line_without_end_is_kept_back_no_further_than_the_longest_secret() -> None:
    redactor = redact.Redactor({"LONG": "ab1 " * 10_000})
    words = [DRAWN.choice(["word", "ab1 " * 10_000, f" token={drawn(40)} ", "\\n" + SHAPES[1][1]]) for _ in range(60)]
    data = " ".join(words).encode()
    stream, given, taken = redact.Stream(redactor), b"", 0
    for piece in cut(data, 30_000):
        taken += len(piece)
        given += stream.feed(piece)
        assert len(redactor.bytes(data[:taken])) - len(given) <= 2 * 40_000 + redact.LONGEST
    assert given + stream.end() == redactor.bytes(data)


def test_lines_are_given_on_at_once() -> None:
    stream = redact.Stream(redact.Redactor({"A": "n0t-a-shape"}))
    assert stream.feed(b"one\ntwo n0t-") == b"one\n"
    assert stream.feed(b"a-shape\n") == b"two [redacted A]\n"
    assert stream.end() == b""


def test_an_environment_tells_which_of_its_values_are_secret() -> None:
    secret, other, password = drawn(40), "correct horse battery", "p-" + drawn(10)
    env = {
        "ANTHROPIC_API_KEY": secret,
        "DB_PASSWORD": other,
        "MINE": "hunter2hunter",
        "MODEL": "claude-opus-4-1-20250805",
        "DATABASE_URL": f"postgres://app:{password}@h/db",
        "LANG": "C.UTF-8 and more",
        "GIT_AUTHOR_NAME": "Somebody Else",
        "SSH_AUTH_SOCK": "/run/user/1000/agent.sock",
        "MAX_OUTPUT_TOKENS": "32000000",
        "TEST_PASSWORD": "postgres",
        "SHORT_TOKEN": "x1y2",
        "TOKEN_URL": "https://login.example/oauth",
        "AWS_SECRET_ACCESS_KEY": f"/{secret}",
    }
    assert redact.known(env, ["MINE", "MODEL", "LANG"]) == {
        "ANTHROPIC_API_KEY": secret,
        "DB_PASSWORD": other,
        "MINE": "hunter2hunter",
        "DATABASE_URL.password": password,
        "AWS_SECRET_ACCESS_KEY": f"/{secret}",
    }


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    data = DRAWN.randbytes(5000)
    assert redact.Redactor({"A": "n0t-a-shape"}).bytes(data) == data
    assert redact.Redactor({}).text("\ud800 lone") == "\ud800 lone"


@pytest.mark.parametrize(
    "escaped", [r"pa\u0026ss\u003cw0rd\u003e12/3", r"pa&ss<w0rd>12\/3", r"p\u0061\u0026ss<w0rd>12/3"]
)
def test_a_document_has_no_secret_however_its_writer_escaped_it(escaped: str) -> None:
    redactor = redact.Redactor({"DB_PASS": "pa&ss<w0rd>12/3"})
    clean = redactor.document(f'{{"summary": "it is {escaped}", "n": [1, {{"{escaped}": null}}]}}'.encode())
    assert json.loads(clean) == {"summary": "it is [redacted DB_PASS]", "n": [1, {"[redacted DB_PASS]": None}]}


def test_a_document_without_a_secret_stays_as_it_was_written() -> None:
    data = b'{ "a" : "\\u0041\\/",\n"b": 1.50 }'
    assert redact.Redactor({"A": "n0t-a-shape"}).document(data) == data
    assert redact.Redactor({"A": "n0t-a-shape"}).document(b"{ no json n0t-a-shape") == b"{ no json [redacted A]"
