"""An SGLang or vLLM server as the sampler of the single-file trainer; it gets new weights as a model folder."""

import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import FiniteFloat, NonNegativeInt, TypeAdapter, ValidationError

from compositionality.errors import UserError
from compositionality.http_json import Json, JsonClient, Result, ServerError
from compositionality.rollout.engines.base import run_concurrently
from compositionality.train.dist import on_first_rank, rank
from compositionality.train.samplers import LARGEST_SEED, Weights
from compositionality.types import STOP, Completion, SamplingOptions

CONCURRENCY = 256
TIMEOUT_S = 3600.0
RETRIES = 5
REPLY = TypeAdapter(tuple[list[NonNegativeInt], list[FiniteFloat], Literal["stop", "length"]], config={"strict": True})
"""Token ids, log-probs and finish reason of a completion."""


class ServerSampler:
    """An SGLang or vLLM server that sees the same file system; bash/single_file/README.md has the commands.

    Under torchrun rank 0 hands over the weights, in the first ``sample`` after ``load``, while the others wait.
    """

    def __init__(self, url: str, model: Path, eos_ids: Sequence[int], *, tied: bool) -> None:
        """``tied``: the model's head is its embedding, of which vLLM on a CPU keeps a packed copy when it reloads."""
        self._server = JsonClient(url, base="/v1", retries=RETRIES, timeout_s=TIMEOUT_S)
        self._model, self._eos_ids = model, list(eos_ids)
        self._name, self._is_sglang = self._call("/v1/models", None, _served)
        if tied and not self._is_sglang and self._call("/server_info", None, _is_on_cpu):
            raise UserError(
                f"{self._server.name}: vLLM's server on a CPU keeps the old head of a model with tied embeddings "
                "(tie_word_embeddings in its config.json) when it gets new weights; use rollout.engine=vllm or builtin"
            )
        self._sent: TemporaryDirectory[str] | None = None
        self._coming: TemporaryDirectory[str] | None = None
        self._waiting = False

    def load(self, weights: Weights) -> None:
        """Keep ``weights`` for the server; it gets them with the next ``sample``, all at once."""
        from safetensors.torch import save_file

        bucket = {name: tensor.detach().cpu().contiguous() for name, tensor in weights}
        self._waiting = True
        if rank() == 0:
            self._coming = self._coming or TemporaryDirectory(prefix="weights-")
            folder = Path(self._coming.name)
            save_file(bucket, folder / f"model-{len([*folder.iterdir()]):05d}.safetensors", {"format": "pt"})

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
        calls = [partial(self._ask, list(p), s, options) for p, s in zip(prompts, seeds, strict=True)]
        return run_concurrently(calls, CONCURRENCY)

    def close(self) -> None:
        """The server stays as it is."""

    def _ask(self, prompt: list[int], seed: int, options: SamplingOptions) -> Completion:
        limit, seed = options.max_tokens, seed & LARGEST_SEED
        sampling: Json = {"temperature": options.temperature, "stop_token_ids": self._eos_ids}
        if self._is_sglang:
            sampling |= {"top_p": options.top_p, "top_k": options.top_k or -1}
            sampling |= {"max_new_tokens": limit, "sampling_seed": seed}
            path, content = "/generate", {"input_ids": prompt, "sampling_params": sampling, "return_logprob": True}
        else:
            path, content = "/v1/completions", {"model": self._name, "prompt": prompt, "max_tokens": limit, **sampling}
            content |= {"seed": seed, "logprobs": 0, "return_token_ids": True, "ignore_eos": True}
        sampled = self._call(path, content, partial(_read_completion, limit=limit))
        if sampled.finish_reason == STOP and (last := sampled.token_ids[-1]) not in self._eos_ids:
            raise UserError(f"{self._server.name}: a completion ended with token {last}, which is no EOS of the model")
        return sampled

    def _give(self) -> None:
        """Make the server read what ``load`` was given, a whole model; the folder before it is removed."""
        coming = self._coming
        assert coming is not None
        folder, files = Path(coming.name), _files_of_tensors(Path(coming.name))
        if missing := _files_of_tensors(self._model).keys() - files.keys():
            raise UserError(f"a server takes whole models only; {len(missing)} tensors are missing: {min(missing)}, …")
        for file in self._model.iterdir():
            if file.is_file() and not file.name.endswith((".safetensors", ".bin", ".index.json")):
                shutil.copy(file, folder)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
        if self._is_sglang:
            self._call("/update_weights_from_disk", {"model_path": coming.name}, _read_success)
        else:
            self._call("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": coming.name}}, dict)
            self._call("/reset_prefix_cache", {}, dict)
        if self._sent is not None:
            self._sent.cleanup()
        self._sent, self._coming = coming, None

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


def _is_on_cpu(reply: Json) -> bool:
    return "device_config=cpu" in reply["vllm_config"]


def _read_success(reply: Json) -> None:
    if not reply["success"]:
        raise ServerError("it does not take the weights", reply)


def _read_completion(reply: Json, limit: int) -> Completion:
    """Return a completion of one to ``limit`` tokens; ServerError for what is none."""
    if meta := reply.get("meta_info"):  # SGLang
        log_probs, tokens = ([pair[place] for pair in meta["output_token_logprobs"]] for place in (0, 1))
        reason = meta["finish_reason"]["type"]
    else:
        choice = reply["choices"][0]
        tokens, log_probs, reason = choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"]
    if len(tokens) != len(log_probs) or not 0 < len(tokens) <= limit:
        raise ServerError(f"{len(tokens)} tokens came with {len(log_probs)} log-probs, of at most {limit}")
    try:
        tokens, log_probs, reason = REPLY.validate_python((tokens, log_probs, reason))
    except ValidationError as error:
        first = error.errors()[0]
        raise ServerError(first["msg"], repr(first["input"])) from error
    return Completion("", len(tokens), reason, tokens, log_probs)


def _files_of_tensors(model: Path) -> dict[str, str]:
    """Return the file of each tensor in the safetensors files of a model folder."""
    from safetensors import safe_open

    opened: Any = {path.name: safe_open(path, "pt") for path in sorted(model.glob("*.safetensors"))}
    return {name: file for file, tensors in opened.items() for name in sorted(tensors.keys())}
