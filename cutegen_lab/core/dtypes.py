"""Element types by the short names used in specs, prompts and launch plans."""

from __future__ import annotations

from enum import Enum

from cutegen_lab.core.hints import did_you_mean


class DType(str, Enum):
    """An element type. The value is the short name an analyst types: ``x: bf16[4096,8192]``."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    F8E4M3 = "f8e4m3fn"
    F8E5M2 = "f8e5m2"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U8 = "u8"
    BOOL = "bool"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZE[self]

    @property
    def is_float(self) -> bool:
        return self.is_float8 or self in (DType.F64, DType.F32, DType.F16, DType.BF16)

    @property
    def is_float8(self) -> bool:
        return self in (DType.F8E4M3, DType.F8E5M2)

    @property
    def eps(self) -> float:
        """Distance from 1 to the next value (0 for integers)."""
        return _EPS.get(self, 0.0)

    @classmethod
    def parse(cls, text: str) -> DType:
        """Accepts short names and torch's (``bfloat16``, ``torch.float32``). Raises ValueError naming the choices."""
        name = text.strip().removeprefix("torch.").lower()
        try:
            return cls(_ALIASES.get(name, name))
        except ValueError:
            raise ValueError(f"unknown dtype {text!r}. {dtypes_for(name)}") from None


def dtypes_for(name: str) -> str:
    """Advice for an unknown dtype: the closest name, and all names."""
    known = [dtype.value for dtype in DType]
    return f"{did_you_mean(name, [*known, *_ALIASES])} Use one of {', '.join(known)}".strip()


_ITEMSIZE = {
    DType.F64: 8, DType.F32: 4, DType.F16: 2, DType.BF16: 2, DType.I64: 8,
    DType.I32: 4, DType.I16: 2, DType.F8E4M3: 1, DType.F8E5M2: 1, DType.I8: 1, DType.U8: 1, DType.BOOL: 1,
}  # fmt: skip
_EPS = {
    DType.F64: 2.0**-52, DType.F32: 2.0**-23, DType.F16: 2.0**-10, DType.BF16: 2.0**-7, DType.F8E4M3: 2.0**-3,
    DType.F8E5M2: 2.0**-2,
}  # fmt: skip
_ALIASES = {
    "float64": "f64", "double": "f64", "float32": "f32", "float": "f32", "fp32": "f32", "float16": "f16", "half": "f16",
    "fp16": "f16", "bfloat16": "bf16", "int64": "i64", "long": "i64", "int32": "i32", "int": "i32", "int16": "i16",
    "int8": "i8", "uint8": "u8", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
}  # fmt: skip
