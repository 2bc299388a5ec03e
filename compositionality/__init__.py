"""A laboratory for one question: does RL teach language models new skills, or only re-rank old ones?

Its functions for a notebook (``from compositionality import problems, judge …``) are loaded when one is asked for.
"""

__version__ = "0.2.0"
__all__ = ["gold_log_prob", "judge", "pass_at_k", "problems", "sample", "train"]

TYPE_CHECKING = False  # true for type checkers, as typing's, which would be imported
if TYPE_CHECKING:
    from compositionality.api import gold_log_prob, judge, pass_at_k, problems, sample, train
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from compositionality import api

        return getattr(api, name)

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
