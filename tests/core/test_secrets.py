"""Credentials in the forms they are sent and echoed in."""

from __future__ import annotations

from base64 import b64encode

import pytest

from cutegen_lab.config import Settings
from cutegen_lab.core.secrets import Secrets, without_credentials


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:pass@host:8000/v1", "http://***@host:8000/v1"),
        ("https://token@host/v1?key=abc", "https://***@host/v1"),
        ("http://user:a/b@c@host/v1", "http://***@host/v1"),
        ("user:pass@host/v1", "***@host/v1"),
        ("https://host/v1", "https://host/v1"),
    ],
)
def test_an_address_as_it_is_shown(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


def test_every_form_is_masked() -> None:
    secrets = Secrets("sk-123456", "https://me:p%40ss-word@host/v1")
    for form in ("sk-123456", "p%40ss-word", "p@ss-word", "me:p%40ss-word", "me:p@ss-word"):
        assert secrets.masked(f"<{form}>") == "<***>", form
    for userinfo in ("me:p%40ss-word", "me:p@ss-word"):
        assert "***" in secrets.masked(f"Basic {b64encode(userinfo.encode()).decode()}")
    assert secrets.masked("the host me pass word") == "the host me pass word"
    assert "word" not in repr(secrets)


def test_what_is_too_short_to_be_a_secret_tears_no_words_apart() -> None:
    text = "none of the tensors: x: f32"
    assert Secrets("none", "http://x:f@host").masked(text) == Secrets().masked(text) == text


def test_settings_show_no_credentials() -> None:
    settings = Settings.from_environment({"OPENAI_API_KEY": "sk-123456", "OPENAI_BASE_URL": "http://u:pw-123@h/v1"})
    assert "sk-123456" not in repr(settings) and "pw-123" not in repr(settings)
