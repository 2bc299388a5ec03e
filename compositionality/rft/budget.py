"""How many problems an RFT run may ask so that it samples as many responses as an RL run did."""

from compositionality.errors import UserError


def matched_chunk_size(rollouts: int, n_chunks: int, samples_per_prompt: int) -> int:
    """Problems per chunk with which ``n_chunks`` iterations sample at most ``rollouts`` responses.

    RL's number is steps x prompts per step x group size; count the groups that dynamic sampling threw away too.
    """
    size = rollouts // (n_chunks * samples_per_prompt)
    if size < 1:
        raise UserError(
            f"a budget of {rollouts} rollouts is too small for {n_chunks} chunks x {samples_per_prompt} samples"
        )
    return size
