"""Types of settings that include their range, and marks by which a setting says more of itself."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

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


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark on a setting's type."""

    name: str


Kind = TypeVar("Kind")
NO_EFFECT, EFFECT, OF_PROFILE = Mark("no effect"), Mark("effect"), Mark("of profile")
SINGLE, VERL = Mark("single"), Mark("verl")
NoEffect = Annotated[Kind, NO_EFFECT]
"""The result does not depend on it: it changes where, how fast or how far a run goes. Of a section: all its keys."""
Effect = Annotated[Kind, EFFECT]
"""The result depends on this key of a section that has else no effect."""
OfProfile = Annotated[Kind, OF_PROFILE]
"""A named algorithm leaves it to the profile: what is asked, used and corrected for."""
OnlySingle = Annotated[Kind, SINGLE]
OnlyVerl = Annotated[Kind, VERL]
"""Only this engine has it."""


def marks_of(schema: type[Any]) -> dict[str, tuple[Mark, ...]]:
    """Return the marks of each field of a dataclass."""
    kinds = get_type_hints(schema, include_extras=True)
    of_types = {entry.name: getattr(kinds[entry.name], "__metadata__", ()) for entry in fields(schema)}
    return {name: tuple(mark for mark in marks if isinstance(mark, Mark)) for name, marks in of_types.items()}
