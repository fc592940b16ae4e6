"""The API key: from the environment, or from the system's keyring if the package ``keyring`` is installed."""

from __future__ import annotations

from urllib.parse import urlsplit

from cutegen_lab.core.secrets import without_credentials

KEYRING_SERVICE = "cutegen-lab"
_OPENAI = "api.openai.com"


def api_key(environment: str, base_url: str) -> str:
    """``environment`` (OPENAI_API_KEY) if it is set, else the keyring's entry for the endpoint's host, so that no other
    endpoint gets the key; empty if there is neither."""
    return environment or _from_keyring(keyring_name(base_url))


def keyring_name(base_url: str) -> str:
    """Name of the endpoint's key in the keyring: its host, with the port if ``base_url`` has one."""
    return urlsplit(without_credentials(base_url)).netloc.rpartition("@")[2] if base_url else _OPENAI


def _from_keyring(name: str) -> str:
    try:
        import keyring

        return keyring.get_password(KEYRING_SERVICE, name) or ""
    except Exception:  # not installed, or this machine has no keyring, or it stays locked
        return ""
