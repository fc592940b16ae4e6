"""Where the API key comes from: the environment or the keyring, and from the keyring for its own endpoint only."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cutegen_lab.config import Settings
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.run import RunSettings
from cutegen_lab.providers.openai.keys import KEYRING_SERVICE, api_key, keyring_name
from cutegen_lab.session.factories import make_provider

KEPT = {(KEYRING_SERVICE, "api.openai.com"): "sk-openai", (KEYRING_SERVICE, "gpu-7:8000"): "sk-vllm"}


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = SimpleNamespace(get_password=lambda service, name: KEPT.get((service, name)))
    monkeypatch.setitem(sys.modules, "keyring", stand_in)


@pytest.mark.usefixtures("keyring")
def test_the_environment_comes_first() -> None:
    assert api_key("sk-environment", "") == "sk-environment"
    assert api_key("", "") == "sk-openai"


@pytest.mark.usefixtures("keyring")
def test_an_endpoint_gets_its_own_key_only() -> None:
    assert api_key("", "http://gpu-7:8000/v1") == "sk-vllm"
    assert api_key("", "http://user:pass@gpu-7:8000/v1") == "sk-vllm"
    assert api_key("", "http://elsewhere/v1") == ""


def test_the_name_of_an_endpoint_is_its_host() -> None:
    assert keyring_name("") == keyring_name("https://api.openai.com/v1") == "api.openai.com"


def test_no_keyring_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)  # not installed
    assert api_key("", "") == ""

    def locked(service: str, name: str) -> str:
        raise RuntimeError("No recommended backend was available")

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=locked))
    assert api_key("", "") == ""


@pytest.mark.usefixtures("keyring")
def test_a_run_takes_the_key_from_the_keyring(tmp_path: Path) -> None:
    settings = Settings.from_environment({})
    provider = make_provider(RunSettings(provider="openai"), settings, tmp_path)
    assert "sk-openai" not in repr(vars(provider)) and "sk-openai" not in repr(settings)
    elsewhere = Settings.from_environment({"OPENAI_BASE_URL": "http://elsewhere/v1"})
    assert make_provider(RunSettings(provider="openai"), elsewhere, tmp_path).name == "openai"


def test_no_key_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ProviderError, match="no API key is set"):
        make_provider(RunSettings(provider="openai"), Settings.from_environment({}), tmp_path)
