"""The trainer's server engine, against a stand-in that speaks both protocols; a real one: test_vllm_server.py."""

import json
from pathlib import Path

import pytest
import torch
from played_server import Reply, playing
from safetensors.torch import load_file, save_file

from compositionality.errors import UserError
from compositionality.train.server_sampler import ServerSampler
from compositionality.types import LENGTH, STOP, SamplingOptions

END = 3
WEIGHTS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b.weight": torch.ones(2)}


def answer(prompt, seed, limit):
    """The prompt's first token, the seed's last two digits, and END, with their log-probs."""
    return [(prompt[0], -0.5), (seed % 100, -1.5), (END, -2.5)][:limit]


def read_weights(folder):
    index = json.loads((Path(folder) / "model.safetensors.index.json").read_text())["weight_map"]
    files = {name: load_file(Path(folder) / name) for name in set(index.values())}
    assert json.loads((Path(folder) / "config.json").read_text()) == {"model_type": "llama"}
    return folder, {name: files[file][name] for name, file in index.items()}


def sglang(body):
    options = body["sampling_params"]
    pairs = answer(body["input_ids"], options["sampling_seed"], options["max_new_tokens"])
    meta = {"output_token_logprobs": [[logp, token, None] for token, logp in pairs]}
    meta["finish_reason"] = {"type": "stop" if pairs[-1][0] == END else "length"}
    return {"text": "?", "output_ids": [token for token, _ in pairs], "meta_info": meta}


def vllm(body, told):
    pairs = answer(body["prompt"], body["seed"], body["max_tokens"])
    choice = {"text": "?", "token_ids": [token for token, _ in pairs], "index": 0}
    choice["logprobs"] = {"token_logprobs": [logp for _, logp in pairs][:told]}
    choice["finish_reason"] = "stop" if pairs[-1][0] == END else "length"
    return {"choices": [choice]}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("compositionality.http_json.FIRST_WAIT_S", 0.001)


@pytest.fixture(params=["sglang", "vllm"])
def server(request):
    def play(asked):
        path, body, _ = asked
        if path in served.spoilt:
            return Reply(served.spoilt.pop(path))
        if path in served.broken:
            return Reply({"error": "busy"}, 503)
        match path:
            case "/v1/models":
                return Reply({"data": [{"id": "served", "owned_by": request.param}]})
            case "/update_weights_from_disk":
                served.weights.append(read_weights(body["model_path"]))
                return Reply({"success": served.takes, "message": "no room"})
            case "/collective_rpc":
                assert body["method"] == "reload_weights"
                served.weights.append(read_weights(body["kwargs"]["weights_path"]))
                return Reply({"results": [None]})
            case "/reset_prefix_cache":
                return Reply(b"")
            case "/server_info":
                return Reply({"vllm_config": f"model='M', device_config={served.device}, seed=0"})
            case "/generate":
                return Reply(sglang(body))
        return Reply(vllm(body, served.told))

    with playing(play) as served:
        served.kind, served.weights, served.broken = request.param, [], set()
        served.device = "cpu"
        served.takes, served.told, served.spoilt = True, None, {}
        yield served


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "llama"}')
    save_file(WEIGHTS, tmp_path / "model" / "model.safetensors")
    return tmp_path / "model"


def sampler_of(server, folder):
    return ServerSampler(f"{server.url}/v1", folder, [END], tied=False)


def calls(server, path):
    return [asked.body for asked in server.seen if asked.path == path]


def test_token_ids_log_probs_and_seeds_arrive_in_order(server, folder):
    sampler = sampler_of(server, folder)
    prompts, seeds = [[row + 10, 5] for row in range(40)], [2**63 + 7 * row for row in range(40)]
    answers = sampler.sample(prompts, seeds, SamplingOptions(temperature=0.5, max_tokens=8))
    assert [answer.token_ids for answer in answers] == [[row + 10, 7 * row % 100, END] for row in range(40)]
    assert all(answer.log_probs == [-0.5, -1.5, -2.5] and answer.finish_reason == STOP for answer in answers)
    asked = calls(server, "/generate" if server.kind == "sglang" else "/v1/completions")
    assert len(asked) == 40
    options = asked[0]["sampling_params"] if server.kind == "sglang" else asked[0]
    assert (options["temperature"], options["stop_token_ids"]) == (0.5, [END])
    short = sampler.sample(prompts[:1], seeds[:1], SamplingOptions(max_tokens=2))[0]
    assert (short.token_ids, short.finish_reason) == ([10, 0], LENGTH)


def test_weights_arrive_whole_once_and_before_the_next_answer(server, folder):
    sampler = sampler_of(server, folder)
    for factor in (1, 2):
        for name, weight in WEIGHTS.items():
            sampler.load([(name, factor * weight)])
        sampler.sample([[1]], [0], SamplingOptions())
        sampler.sample([[1]], [0], SamplingOptions())
        path, weights = server.weights[-1]
        assert len(server.weights) == factor
        assert weights.keys() == WEIGHTS.keys()
        assert all(torch.equal(weights[name], factor * WEIGHTS[name]) for name in WEIGHTS)
        assert Path(path).is_dir()
    order = [asked.path for asked in server.seen if asked.path != "/v1/models"]
    assert order.index("/generate" if server.kind == "sglang" else "/v1/completions") > 0
    assert ("/reset_prefix_cache" in order) == (server.kind == "vllm")
    assert not Path(server.weights[0][0]).exists()
    sampler.load([("b.weight", WEIGHTS["b.weight"])])
    with pytest.raises(UserError, match=r"1 tensors are missing: a\.weight"):
        sampler.sample([[1]], [0], SamplingOptions())
    assert len(server.weights) == 2


def test_a_server_that_refuses_is_one_line(server, folder):
    sampler = sampler_of(server, folder)
    server.broken = {"/generate", "/v1/completions"}
    with pytest.raises(UserError, match=r"the rollout server failed on /.*asked 6 times: status 503: .*busy"):
        sampler.sample([[1]] * 5, range(5), SamplingOptions())
    sampler.load(WEIGHTS.items())
    server.broken, server.takes = {"/collective_rpc"}, False
    with pytest.raises(UserError, match=r"no room|status 503"):
        sampler.sample([[1]], [0], SamplingOptions())
    with pytest.raises(UserError, match=r"the rollout server failed on /v1/models.*: no answer"):
        ServerSampler("http://127.0.0.1:9", folder, [END], tied=False)


def test_tied_embeddings_are_not_for_vllm_on_a_cpu(server, folder):
    """Its reload does not reach the head: test_vllm_server.py."""
    if server.kind == "vllm":
        with pytest.raises(UserError, match=r"tied embeddings .* use rollout\.engine=vllm or builtin"):
            ServerSampler(server.url, folder, [END], tied=True)
        server.device = "cuda"
    ServerSampler(server.url, folder, [END], tied=True)


def test_truncation_is_for_servers_that_tell_what_they_drew_from(server, folder):
    sampler, options = sampler_of(server, folder), SamplingOptions(top_k=5, top_p=0.9)
    if server.kind == "sglang":
        assert sampler.sample([[1]], [0], options)[0].finish_reason == STOP
        assert calls(server, "/generate")[0]["sampling_params"]["top_k"] == 5
    else:
        with pytest.raises(UserError, match="top_k=5: a vLLM server"):
            sampler.sample([[1]], [0], options)


def test_answers_that_do_not_fit_together_are_refused(server, folder):
    sampler = ServerSampler(server.url, folder, [END + 1], tied=False)
    with pytest.raises(UserError, match="ended with token 3, which is no EOS"):
        sampler.sample([[1]], [0], SamplingOptions())
    if server.kind == "vllm":
        server.told = 1
        with pytest.raises(UserError, match="3 tokens came with 1 log-probs"):
            sampler_of(server, folder).sample([[1]], [0], SamplingOptions())


@pytest.mark.parametrize(
    "payload",
    [
        b"<html>",
        b"[]",
        b'{"choices": [{"token_ids": [1], "logprobs": {"tok',
        b'{"choices": [null], "meta_info": null}',
        b'{"choices": [{"token_ids": ["1"], "logprobs": {"token_logprobs": [-1]}, "finish_reason": "stop"}],'
        b' "meta_info": {"output_token_logprobs": [[-1, "1"]], "finish_reason": {"type": "stop"}}}',
        b'{"choices": [{"token_ids": [1], "logprobs": {"token_logprobs": [NaN]}, "finish_reason": "stop"}],'
        b' "meta_info": {"output_token_logprobs": [[NaN, 1]], "finish_reason": {"type": "stop"}}}',
        b'{"choices": [{"token_ids": [1], "logprobs": {"token_logprobs": [-1]}, "finish_reason": "abort"}],'
        b' "meta_info": {"output_token_logprobs": [[-1, 1]], "finish_reason": {"type": "abort"}}}',
    ],
)
def test_p05_a_reply_outside_the_schema_is_asked_for_again(server, folder, payload, monkeypatch):
    path = "/generate" if server.kind == "sglang" else "/v1/completions"
    sampler = sampler_of(server, folder)
    server.spoilt = {path: payload}
    assert sampler.sample([[1]], [0], SamplingOptions())[0].token_ids == [1, 0, END]
    assert len(calls(server, path)) == 2
    monkeypatch.setattr(sampler._server, "_retries", 0)
    server.spoilt = {path: payload}
    with pytest.raises(UserError, match=rf"http://127.0.0.1:\d+/v1: the rollout server failed on {path}"):
        sampler.sample([[1]], [0], SamplingOptions())
