"""Plans of studies as their scripts ask for them."""

from typing import Any

from compositionality.study.model import Replicate, Request
from compositionality.study.plan import plan
from compositionality.study.steps import Step


def asked(study: str = "section41_42", profile: str = "smoke", seeds: int = 1, **keys: Any) -> Request:
    return Request(study, profile, tuple(Replicate("s", seed) for seed in range(seeds)), **keys)


def by_key(request: Request, *only: str) -> dict[str, Step]:
    return {step.key: step for step in plan(request, only)}
