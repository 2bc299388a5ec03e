"""The policy of SFT, pretraining and GRPO: a causal language model, on one CPU core or split over a mesh.

From the top: load the Hugging Face model; log-probabilities and entropy of given tokens; FSDP2 × tensor parallelism;
AdamW, gradients summed over the ranks and clipped, the learning rate.

Names of tensors: B rows, T tokens, D width, V vocabulary (this rank's slice of it), N response tokens of a batch.
"""

# ruff: noqa: N803, N806

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
from torch.utils.checkpoint import checkpoint

from compositionality.train.dist import device
from compositionality.train.settings import MeshSettings, ModelSettings, OptimSettings, check_split

HEAD_TOKENS = 2048  # with activation checkpointing, logits are computed for so many tokens at a time


# ---- the model


def load_model(settings: ModelSettings) -> Any:
    """Return the Hugging Face model, float32, without dropout; every rank loads all of it."""
    from transformers import AutoConfig
    from transformers.utils import logging

    from compositionality.rollout.model_folder import load_causal_lm  # with what checks a folder

    logging.disable_progress_bar()
    config = AutoConfig.from_pretrained(settings.path, local_files_only=True)
    config.attention_dropout = 0.0
    options = {"config": config, "dtype": torch.float32, "attn_implementation": settings.attention}
    model = load_causal_lm(settings.path, **options)
    if settings.lora.rank:
        from compositionality.train.lora import add_adapters

        add_adapters(model, settings.lora)
    model.model.embed_tokens.padding_idx = None  # the mask says what is trained, not the id; and a shard has other ids
    if settings.activation_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train()


@contextmanager
def without_adapters(model: nn.Module) -> Iterator[None]:
    """Compute as before any training, for a ``with`` block, if adapters alone are trained; peft's have a scale."""
    adapters = [(layer, name) for layer in model.modules() if hasattr(layer, "set_scale") for name in layer.scaling]
    for layer, name in adapters:
        layer.set_scale(name, 0)
    try:
        yield
    finally:
        for layer, name in adapters:
            layer.set_scale(name, 1)


class Policy(nn.Module):  # type: ignore[misc]
    """A causal language model as a policy; its vocabulary may be split over the tensor-parallel ranks."""

    def __init__(self, model: Any, tensor_mesh: DeviceMesh | None = None, *, entropy_gradient: bool = False) -> None:
        super().__init__()
        self.model = model
        self.group = tensor_mesh.get_group() if tensor_mesh is not None and tensor_mesh.size() > 1 else None
        self.first_token = 0
        if tensor_mesh is not None and self.group is not None:  # DTensor gives the first ranks ceil(V / ranks) rows
            self.first_token = tensor_mesh.get_local_rank() * -(-model.config.vocab_size // tensor_mesh.size())
        self.entropy_gradient = entropy_gradient

    def forward(
        self, tokens_BT: Tensor, loss_mask_BT: Tensor, temperature: float = 1.0, *, with_entropy: bool = True
    ) -> tuple[Tensor, ...]:
        """Return the log-probability and, if wanted, entropy at the N tokens that ``loss_mask_BT`` marks, row by row.

        Both float32. Rows are padded at their ends. No attention mask is needed: attention is causal.
        """
        hidden_BTD = self.model.model(input_ids=tokens_BT[:, :-1], use_cache=False).last_hidden_state
        places_N = loss_mask_BT[:, 1:].flatten().nonzero().squeeze(1)
        hidden_ND = hidden_BTD.flatten(0, 1).index_select(0, places_N)
        target_N = tokens_BT[:, 1:].flatten()[places_N]
        if not self.model.is_gradient_checkpointing:
            return self.head(hidden_ND, target_N, temperature, with_entropy)
        pieces = zip(hidden_ND.split(HEAD_TOKENS), target_N.split(HEAD_TOKENS), strict=True)
        parts = [checkpoint(self.head, *piece, temperature, with_entropy, use_reentrant=False) for piece in pieces]
        return tuple(map(torch.cat, zip(*parts, strict=True)))

    def head(self, hidden_ND: Tensor, target_N: Tensor, temperature: float, with_entropy: bool) -> tuple[Tensor, ...]:
        """Turn the last hidden states into log-probabilities and, if wanted, entropies."""
        logits_NV = self.model.lm_head(hidden_ND).float()
        if temperature != 1.0:
            logits_NV = logits_NV / temperature
        logp_N, lse_N = log_probabilities(logits_NV, target_N, self.first_token, self.group)
        if not with_entropy:
            return (logp_N,)
        return logp_N, entropy(logits_NV, lse_N, self.group, self.entropy_gradient)


class SumOverRanks(torch.autograd.Function):  # type: ignore[misc]
    """Sum over the ranks of a group; the gradient of each rank's part is that of the sum."""

    @staticmethod
    def forward(_: Any, part: Tensor, group: dist.ProcessGroup) -> Tensor:
        """All-reduce ``part``: the same bits on every rank."""
        total = part.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Pass the gradient through: every rank computes the same loss, so it is not summed again."""
        return gradient, None


def log_probabilities(
    logits_NV: Tensor, target_N: Tensor, first: int, group: dist.ProcessGroup | None
) -> tuple[Tensor, Tensor]:
    """Return log p(target) and log Σ exp, detached, from this rank's slice of the logits, from token ``first`` on."""
    lse_N = logits_NV.logsumexp(-1)
    local_N = target_N - first
    in_slice_N = (local_N >= 0) & (local_N < logits_NV.shape[-1])
    chosen_N = logits_NV.gather(-1, (local_N * in_slice_N).unsqueeze(-1)).squeeze(-1)
    if group is not None:
        max_N = lse_N.detach().clone()
        dist.all_reduce(max_N, dist.ReduceOp.MAX, group=group)
        lse_N = max_N + SumOverRanks.apply((lse_N - max_N).exp(), group).log()
        chosen_N = SumOverRanks.apply(chosen_N * in_slice_N, group)
    return chosen_N - lse_N, lse_N.detach()


def entropy(logits_NV: Tensor, lse_N: Tensor, group: dist.ProcessGroup | None, with_gradient: bool) -> Tensor:
    """Return the entropy H of the softmax; its gradient, -p (log p + H), is written out since H mixes all slices."""
    logp_NV = logits_NV.detach() - lse_N.unsqueeze(-1)
    p_NV = logp_NV.exp()
    entropy_N = -(p_NV * logp_NV).sum(-1)
    if group is not None:
        dist.all_reduce(entropy_N, group=group)
    if not with_gradient:
        return entropy_N
    slope_NV = -p_NV * (logp_NV + entropy_N.unsqueeze(-1))
    part_N = (slope_NV * logits_NV).sum(-1)  # only its gradient, the slope, is used
    return entropy_N + part_N - part_N.detach()


# ---- sharding


def shard(
    model: Any,
    mesh: DeviceMesh | None,
    settings: MeshSettings,
    dtype: str = "float32",
    *,
    entropy_gradient: bool = False,
) -> Policy:
    """Return the policy on this rank: layers split over ``tensor``, weights over ``data`` if ``settings.shard``."""
    if mesh is None:
        return Policy(model, entropy_gradient=entropy_gradient)
    if mesh["tensor"].size() > 1:
        split_layers(model.to(device()), mesh["tensor"])
    policy = Policy(model, mesh["tensor"], entropy_gradient=entropy_gradient)
    if not settings.shard:
        policy.to(device())
        return policy
    precision = MixedPrecisionPolicy()
    if dtype == "bfloat16":
        precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for module in (*model.model.layers, policy):
        fully_shard(module, mesh=mesh["data"], mp_policy=precision, reshard_after_forward=True)
    for module in policy.modules():
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(True)
            module.set_gradient_divide_factor(1.0)  # losses are shares of the global loss: gradients add up
    return policy


def split_layers(model: Any, mesh: DeviceMesh) -> None:
    """Split for tensor parallelism: attention by heads, MLP by columns, embedding and head by vocabulary."""
    check_split(model.config.to_dict(), mesh.size())
    plan: dict[str, Any] = {
        "model.embed_tokens": RowwiseParallel(input_layouts=Replicate()),
        "lm_head": ColwiseParallel(),  # its output stays split by vocabulary
    }
    for number, layer in enumerate(model.model.layers):
        for name, module in layer.named_modules(prefix=f"model.layers.{number}"):
            if isinstance(module, nn.Linear):
                plan[name] = RowwiseParallel() if name.endswith(("o_proj", "down_proj")) else ColwiseParallel()
            elif name.endswith(("q_norm", "k_norm")):  # one weight for all heads, so gradients of heads add up
                plan[name] = SequenceParallel(sequence_dim=2, use_local_output=True)
    parallelize_module(model, mesh, plan)
    if model.config.tie_word_embeddings:
        model.lm_head.weight = model.model.embed_tokens.weight


# ---- the optimizer


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """Return what an optimizer moves: all parameters, or the adapters."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def new_optimizer(policy: nn.Module, settings: OptimSettings) -> torch.optim.Optimizer:
    """Return AdamW; one parameter group per mesh, since its fused kernels do not take several."""
    groups: dict[Any, list[nn.Parameter]] = {}
    for parameter in trainable(policy):
        groups.setdefault(parameter.device_mesh if isinstance(parameter, DTensor) else None, []).append(parameter)
    betas, decay = (settings.beta1, settings.beta2), settings.weight_decay
    parts = [{"params": parameters} for parameters in groups.values()]
    return torch.optim.AdamW(parts, lr=settings.lr, betas=betas, weight_decay=decay, fused=True)


def learning_rate_at(step: int, steps: int, settings: OptimSettings) -> float:
    """Return the learning rate at ``step`` (0 is the first) of ``steps``: linear warm-up, polynomial decay."""
    warmup = min(1.0, (step + 1) / (settings.warmup_steps + 1))
    return settings.lr * warmup * float((1 - step / steps) ** settings.decay_power)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def reduce_gradients(policy: nn.Module, mesh: DeviceMesh | None) -> None:
    """Sum the gradients of unsharded parameters over the data ranks, in one flat bucket; FSDP has summed its own."""
    if mesh is None or mesh["data"].size() == 1:
        return
    if local := [local_gradient(parameter) for parameter in trainable(policy) if not split_by_fsdp(parameter)]:
        flat = torch.cat([gradient.flatten() for gradient in local])
        dist.all_reduce(flat, group=mesh["data"].get_group())
        for gradient, total in zip(local, flat.split([gradient.numel() for gradient in local]), strict=True):
            gradient.copy_(total.view_as(gradient))


def split_by_fsdp(parameter: Tensor) -> bool:
    """Return True if the data ranks hold different parts of the parameter."""
    return isinstance(parameter, DTensor) and "data" in (parameter.device_mesh.mesh_dim_names or ())


def local_gradient(parameter: nn.Parameter) -> Tensor:
    """Return this rank's part of the gradient, setting ``grad``: zeros for None, tensor ranks' partial sums added."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    if not isinstance(parameter, DTensor):
        return parameter.grad
    if parameter.grad.placements != parameter.placements:
        parameter.grad = parameter.grad.redistribute(placements=parameter.placements)
    local: Tensor = parameter.grad.to_local()
    return local


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale the gradients to a global norm of at most ``max_norm``; returns the norm before. Each shard counts once."""
    local = [(parameter, local_gradient(parameter).detach()) for parameter in parameters]
    squares: dict[tuple[dist.ProcessGroup, ...], list[Tensor]] = {}
    for parameter, gradient in local:
        squares.setdefault(sharding_groups(parameter), []).append(gradient)
    total = torch.zeros((), device=local[0][1].device)
    for groups, gradients in squares.items():
        part = torch.stack(torch._foreach_norm(gradients)).square().sum()
        for group in groups:
            dist.all_reduce(part, group=group)
        total += part
    norm = total.sqrt()
    torch._foreach_mul_([gradient for _, gradient in local], (max_norm / (norm + 1e-6)).clamp(max=1.0))
    return float(norm)


def sharding_groups(parameter: nn.Parameter) -> tuple[dist.ProcessGroup, ...]:
    """Return the groups of ranks over which a parameter is split."""
    if not isinstance(parameter, DTensor):
        return ()
    placed = enumerate(parameter.placements)
    return tuple(parameter.device_mesh.get_group(number) for number, place in placed if not place.is_replicate())
