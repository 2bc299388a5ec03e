"""Memory of sampling: weights, the cache of keys and values, how many completions of full length fit beside them."""

from dataclasses import dataclass

from compositionality.rollout.forecast.need import GPU, HOST, Need
from compositionality.rollout.forecast.shape import ModelShape

CONTEXT = 1.5e9
"""CUDA context and communication buffers of a process: an estimate, not measured here."""
GRAPHS = 1.0e9
"""CUDA graphs of vLLM: an estimate, not measured here."""
VLLM_HOST = 4.0e9
"""Host memory of a vLLM engine's processes without weights: an estimate."""
PYTHON = 0.8e9
"""Host memory of a process that has loaded torch and transformers."""
SPARE_COLUMNS = 64


@dataclass(frozen=True)
class Vllm:
    """``length``: prompt and completion in tokens; ``share`` of the GPU is vLLM's; ``bytes_each``: of a weight."""

    share: float
    length: int
    tensor: int
    bytes_each: int
    batched_tokens: int
    sequences: int
    lower: str

    def weights(self, shape: ModelShape) -> float:
        """Bytes of weights on each GPU."""
        return shape.parameters * self.bytes_each / self.tensor

    def work(self, shape: ModelShape) -> float:
        """Bytes of one forward pass over the largest batch, and of sampling from its logits.

        vLLM keeps the most that it measures in a run of ``max_num_batched_tokens`` tokens and ``max_num_seqs`` rows
        (v1/worker/gpu_worker.py, determine_available_memory): a block's MLP, the logits in float32 and their softmax.
        """
        hidden = 2 * shape.feed_forward / self.tensor + 4 * shape.width
        return self.batched_tokens * hidden * self.bytes_each + 3 * 4 * self.sequences * shape.vocabulary + GRAPHS

    def completion(self, shape: ModelShape) -> float:
        """Bytes of cache of a completion of full length."""
        return self.length * shape.cache_bytes(self.bytes_each) / min(self.tensor, shape.kv_heads)

    def at_once(self, shape: ModelShape, gpu_bytes: float) -> int:
        """Completions of full length that fit into the cache."""
        left = self.share * gpu_bytes - self.weights(shape) - self.work(shape) - CONTEXT
        return max(0, int(left / self.completion(shape)))

    def need(self, shape: ModelShape, step: str, beside: float = 0.0) -> Need:
        """Of a GPU: that one completion of full length fits into vLLM's share, beside what others hold (bytes)."""
        parts = {
            "weights": self.weights(shape),
            "one completion": self.completion(shape),
            "forward pass": self.work(shape),
            "CUDA": CONTEXT,
        }
        own = sum(parts.values())
        others = max(own / self.share - own, beside)
        return Need(step, GPU, {**parts, "outside vLLM's share": others}, self.lower)


def builtin_need(shape: ModelShape, step: str, rows: int, length: int, bytes_each: int, place: str) -> Need:
    """Memory of the built-in sampler (rollout/sampler/): weights, the cache of ``rows`` of full ``length`` in tokens.

    While it grows, the old cache lies beside the new one.
    """
    parts = {
        "weights": float(shape.parameters * bytes_each),
        "cache": 2.0 * rows * (length + SPARE_COLUMNS) * shape.cache_bytes(bytes_each),
        "logits": 3.0 * 4 * rows * shape.vocabulary,
    }
    parts |= {"Python and torch": PYTHON} if place == HOST else {"CUDA": CONTEXT}
    return Need(step, place, parts, "lower rollout.max_rows or max_tokens")
