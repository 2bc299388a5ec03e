"""Training: the tiny model, verl, and what they share. Called, the package is the function ``train``."""

import sys
from types import ModuleType

from compositionality.train.function import train

__all__ = ["train"]


class _Callable(ModuleType):
    """The package and the function of this name in one: Python binds a package's name to its module when it loads."""

    __call__ = staticmethod(train)


sys.modules[__name__].__class__ = _Callable
