"""Events and artifacts as bytes: JSON, validated by pydantic when read."""

from __future__ import annotations

import json
import zlib
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import InputError, StoreError
from cutegen_lab.core.run import Event

_EVENTS: TypeAdapter[Event] = TypeAdapter(
    Annotated[Event, Field(discriminator="type")], config=ConfigDict(ser_json_inf_nan="strings")
)


def event_to_json(event: Event) -> str:
    """One line of JSON; infinities and NaN become the strings "Infinity", "-Infinity", "NaN". Raises InputError for
    text that UTF-8 cannot encode."""
    try:
        return _EVENTS.dump_json(event).decode()
    except PydanticSerializationError as error:
        raise InputError(f"this cannot be recorded: {error}", "Leave those characters out, or escape them.") from None


def event_from_json(text: str) -> Event:
    """Reads an event. Raises :class:`StoreError` for text that is not an event, or is one of another version."""
    try:
        return _EVENTS.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise StoreError(f"unreadable event: {first['msg']} at {place}", "Was it written by another version?") from None


def artifact_to_blob(artifact: Artifact) -> bytes:
    return zlib.compress(json.dumps(artifact.to_dict(), separators=(",", ":")).encode())


def artifact_from_blob(blob: bytes) -> Artifact:
    try:
        return Artifact.from_dict(json.loads(zlib.decompress(blob)))
    except (zlib.error, ValueError, KeyError, TypeError, InputError) as error:
        raise StoreError(f"unreadable artifact: {error}", "Compile the candidate again.") from None
