"""vLLM on a CPU under verl: weights that can be loaded more than once (entry point ``vllm.general_plugins``)."""

from compositionality.train.verl import on_cpu


def keep_weights() -> None:
    """Let vLLM's CPU linear layers keep their weight, so that RL can load new ones into a running engine.

    By default they pack it for oneDNN and drop the parameter; the first weight sync then fails inside the vLLM
    worker and the trainer waits for ever. Costs a third of the decoding speed, hence only under ``VERL_PLATFORM=cpu``.
    """
    if on_cpu():
        from compositionality.train.vllm_sampler import use_plain_linears

        use_plain_linears()
