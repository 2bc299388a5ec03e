"""What an adapter says where the library that it is for is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from compositionality.errors import UserError


@contextmanager
def installed(package: str, requirement: str) -> Iterator[None]:
    """Raise UserError with the command that installs ``package`` if the imports within find none."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise
        raise UserError(f"{package} is not installed; pip install '{requirement}'") from error
