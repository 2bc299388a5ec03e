"""Training: the tiny model, verl, and what they share. Called, the package is the function ``call.train``."""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """The package and the function of this name in one: Python binds a package's name to its module when it loads."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        from compositionality.train.call import train

        return train(*arguments, **settings)


sys.modules[__name__].__class__ = _Callable
