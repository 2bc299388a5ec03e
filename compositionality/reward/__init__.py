"""From a response to a verdict to a reward; the pool of judges; the function that verl calls."""

from compositionality.reward.judge import judge_response
from compositionality.reward.shapes import Shape, reward

__all__ = ["Shape", "judge_response", "reward"]
