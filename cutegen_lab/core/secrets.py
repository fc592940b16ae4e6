"""Masks keys and passwords in every text that leaves a provider."""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, unquote

_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?(.*)@")  # up to the last @: a password may contain one unescaped
_SHORTEST = 6  # minimum length of a masked secret: masking shorter ones would garble words and protect nothing
MASK = "***"


class Secrets:
    """Masks ``key`` and the credentials in ``url`` (``http://user:password@host``), in every form they are sent or
    echoed."""

    def __init__(self, key: str = "", url: str = "") -> None:
        forms = {key}
        if match := _USERINFO.match(url):
            for userinfo in (match[2], unquote(match[2])):
                user, _, password = userinfo.partition(":")
                secret = password or user
                forms |= {userinfo, secret, quote(secret, safe="")}
                for encode in (b64encode, urlsafe_b64encode):  # the form of the header `Authorization: Basic`
                    forms.add(encode(userinfo.encode(errors="replace")).decode().rstrip("="))
        self._forms = sorted((form for form in forms if len(form) >= _SHORTEST), key=len, reverse=True)

    def __repr__(self) -> str:
        return f"Secrets({len(self._forms)} forms)"

    def masked(self, text: str) -> str:
        """``text`` with every secret replaced by ``MASK``."""
        for form in self._forms:
            text = text.replace(form, MASK)
        return text


def without_credentials(url: str) -> str:
    """``url`` without user, password and query, for display."""
    shown = _USERINFO.sub(lambda match: f"{match[1] or ''}{MASK}@", url)
    return shown.partition("?")[0]
