"""Types of settings that include their range."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Interval, MinLen
from pydantic_core import CoreSchema, core_schema

REQUIRED: Any = "???"
"""The default of a setting that must be given."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """The values that a key may have."""

    choices: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        """Validate the plain type, then membership."""
        return core_schema.no_info_after_validator_function(self._member, handler(source))

    def _member(self, value: str) -> str:
        if value not in self.choices:
            raise ValueError
        return value


@dataclass(frozen=True, slots=True)
class OneUp:
    """A number of at least 1, or the word ``all``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        """Validate either, with one error for both."""
        either: list[CoreSchema | tuple[CoreSchema, str]] = [
            core_schema.literal_schema([ALL]),
            core_schema.int_schema(ge=1),
        ]
        return core_schema.union_schema(either, custom_error_type="neither", custom_error_message="neither")


ALL: Literal["all"] = "all"
CountOrAll = Annotated[int | Literal["all"], OneUp()]
PositiveInt = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
PositiveFloat = Annotated[float, Gt(0)]
NonNegativeFloat = Annotated[float, Ge(0)]
Fraction = Annotated[float, Interval(ge=0, le=1)]
FractionBelowOne = Annotated[float, Interval(ge=0, lt=1)]
PositiveFraction = Annotated[float, Interval(gt=0, le=1)]
NonEmptyStr = Annotated[str, MinLen(1)]
"""A path or a name that may not be empty."""
Seed = Annotated[int, Interval(ge=0, le=2**31 - 1)]
"""A seed that every random generator accepts."""
Workers = Annotated[int, Interval(ge=1, le=1024)]
"""Processes on this machine."""
Port = Annotated[int, Interval(ge=1, le=65535)]
