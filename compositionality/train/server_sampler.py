"""An SGLang or vLLM server as the sampler of the single-file trainer; it gets new weights as a model folder."""

import json
import math
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from torch import Tensor

from compositionality.errors import UserError
from compositionality.http_json import Json, JsonClient, ServerError
from compositionality.rollout.engines.base import run_concurrently
from compositionality.train.dist import on_first_rank, rank
from compositionality.train.samplers import LARGEST_SEED, Weights
from compositionality.types import LENGTH, STOP, Completion, SamplingOptions

Result = TypeVar("Result")
CONCURRENCY = 256
TIMEOUT_S = 3600.0
RETRIES = 5


class ServerSampler:
    """An SGLang or vLLM server that sees the same file system; new weights reach it as a model folder.

    SGLang: ``python -m sglang.launch_server --model-path M --enable-deterministic-inference`` (else seeds do nothing);
    leave SGLANG_RETURN_ORIGINAL_LOGPROB unset.
    vLLM: ``VLLM_SERVER_DEV_MODE=1 vllm serve M --logprobs-mode processed_logprobs`` (its build for CPUs: ``python -m
    vllm.entrypoints.openai.api_server --model M``, see examples/collect_rollouts.py); the variable opens the call that
    reloads weights, and anybody who reaches the port can make it, so keep the port closed to others.

    Under torchrun rank 0 hands over the weights, in the first ``sample`` after ``load``, while the others wait.
    """

    def __init__(self, url: str, model: Path, eos_ids: Sequence[int]) -> None:
        self._server = JsonClient(url, base="/v1", retries=RETRIES, timeout_s=TIMEOUT_S)
        self._model, self._eos_ids = model, list(eos_ids)
        self._name, self._is_sglang = self._call("/v1/models", None, _served)
        self._sent: TemporaryDirectory[str] | None = None
        self._coming: TemporaryDirectory[str] | None = None
        self._files: dict[str, str] = {}
        self._waiting = False

    def load(self, weights: Weights) -> None:
        """Keep ``weights`` for the server; it gets them with the next ``sample``, all at once."""
        bucket = {name: tensor.detach().cpu().contiguous() for name, tensor in weights}
        self._waiting = True
        if rank() == 0:
            self._write(bucket)

    def sample(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[int], options: SamplingOptions
    ) -> list[Completion]:
        """Return one completion per prompt and seed, in order; one request each, up to 256 at a time."""
        if not self._is_sglang and (options.top_k or options.top_p < 1):
            raise UserError(
                f"top_p={options.top_p:g} top_k={options.top_k}: a vLLM server only tells log-probs after truncation; "
                "use top_p=1 and top_k=0, or rollout.engine=builtin"
            )
        if self._waiting:
            on_first_rank(self._give)
            self._waiting = False
        ask = self._ask_sglang if self._is_sglang else self._ask_vllm
        calls = [partial(ask, list(p), s, options) for p, s in zip(prompts, seeds, strict=True)]
        return run_concurrently(calls, CONCURRENCY)

    def close(self) -> None:
        """The server stays as it is."""

    def _ask_sglang(self, prompt: list[int], seed: int, options: SamplingOptions) -> Completion:
        sampling = {
            "temperature": options.temperature,
            "top_p": options.top_p,
            "top_k": options.top_k or -1,
            "max_new_tokens": options.max_tokens,
            "stop_token_ids": self._eos_ids,
            "sampling_seed": seed & LARGEST_SEED,
        }
        content = {"input_ids": prompt, "sampling_params": sampling, "return_logprob": True}
        return self._checked(self._call("/generate", content, partial(_read_sglang, limit=options.max_tokens)))

    def _ask_vllm(self, prompt: list[int], seed: int, options: SamplingOptions) -> Completion:
        content = {
            "model": self._name,
            "prompt": prompt,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            "seed": seed & LARGEST_SEED,
            "logprobs": 0,
            "return_token_ids": True,
            "ignore_eos": True,
            "stop_token_ids": self._eos_ids,
        }
        return self._checked(self._call("/v1/completions", content, partial(_read_vllm, limit=options.max_tokens)))

    def _checked(self, sampled: Completion) -> Completion:
        last = sampled.token_ids[-1]
        if sampled.finish_reason == STOP and last not in self._eos_ids:
            raise UserError(f"{self._server.name}: a completion ended with token {last}, which is no EOS of the model")
        return sampled

    def _write(self, bucket: dict[str, Tensor]) -> None:
        from safetensors.torch import save_file

        if self._coming is None:
            self._coming, self._files = TemporaryDirectory(prefix="weights-"), {}
        name = f"model-{len(set(self._files.values())):05d}.safetensors"
        save_file(bucket, Path(self._coming.name) / name, {"format": "pt"})
        self._files |= dict.fromkeys(bucket, name)

    def _give(self) -> None:
        """Make the server read what ``load`` was given; the folder before it is removed."""
        coming = self._coming
        assert coming is not None
        self._complete(Path(coming.name))
        if self._is_sglang:
            self._call("/update_weights_from_disk", {"model_path": coming.name}, _read_success)
        else:
            self._call("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": coming.name}}, dict)
            self._call("/reset_prefix_cache", {}, dict)
        if self._sent is not None:
            self._sent.cleanup()
        self._sent, self._coming = coming, None

    def _complete(self, folder: Path) -> None:
        """Turn the weights in ``folder`` into a model folder; UserError unless they are the whole model."""
        missing = _weight_names(self._model) - self._files.keys()
        if missing:
            raise UserError(f"a server takes whole models only; {len(missing)} tensors are missing: {min(missing)}, …")
        for file in self._model.iterdir():
            if file.is_file() and not file.name.endswith((".safetensors", ".bin", ".index.json")):
                shutil.copy(file, folder)
        index = {"metadata": {}, "weight_map": self._files}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    def _call(self, path: str, content: Json | None, read: Callable[[Json], Result]) -> Result:
        """POST ``content`` (None: GET) → what ``read`` makes of the reply; UserError if the server fails or refuses."""
        try:
            return self._server.call(path, content, read)
        except ServerError as error:
            raise UserError(
                f"{self._server.name}: the rollout server failed on {path}, asked {RETRIES + 1} times: {error}; "
                "repair it and run again"
            ) from error


def _served(reply: Json) -> tuple[str, bool]:
    """Return the name of the model that a server has, and whether the server is SGLang."""
    served = dict(reply["data"][0])
    return str(served["id"]), served.get("owned_by") == "sglang"


def _read_success(reply: Json) -> None:
    if not reply["success"]:
        raise ServerError("it does not take the weights", reply)


def _read_sglang(reply: Json, limit: int) -> Completion:
    meta = reply["meta_info"]
    pairs = [(token, logp) for logp, token, *_ in meta["output_token_logprobs"]]
    return _read_completion(
        [token for token, _ in pairs], [logp for _, logp in pairs], meta["finish_reason"]["type"], limit
    )


def _read_vllm(reply: Json, limit: int) -> Completion:
    choice = reply["choices"][0]
    return _read_completion(choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"], limit)


def _read_completion(tokens: list[Any], log_probs: list[Any], finish_reason: Any, limit: int) -> Completion:
    """Return a completion of one to ``limit`` tokens; ServerError for what is none."""
    if len(tokens) != len(log_probs) or not 0 < len(tokens) <= limit:
        raise ServerError(f"{len(tokens)} tokens came with {len(log_probs)} log-probs, of at most {limit}")
    if finish_reason not in (STOP, LENGTH):
        raise ServerError("finish_reason", repr(finish_reason))
    if not all(type(token) is int and token >= 0 for token in tokens):
        raise ServerError("tokens that are no whole numbers", tokens)
    if not all(isinstance(logp, float | int) and math.isfinite(logp) for logp in log_probs):
        raise ServerError("log-probs that are no finite numbers", log_probs)
    return Completion("", len(tokens), finish_reason, tokens, [float(logp) for logp in log_probs])


def _weight_names(model: Path) -> set[str]:
    """Return the names of the tensors in the safetensors files of a model folder."""
    from safetensors import safe_open

    names: set[str] = set()
    for path in model.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            names.update(file.keys())
    return names
