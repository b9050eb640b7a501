"""What speculation must commit to pay, and what a drafter can commit at most."""


def break_even_commit(speculative_step_ms: float, plain_step_ms: float) -> float:
    """Commit length above which speculation beats plain decoding: tau > step_spec/step_plain.

    Both steps at the same context and batch. Whether a block can reach it is another question:
    see ``block_limit``.
    """
    return speculative_step_ms / plain_step_ms


def block_limit(draft_tokens: int) -> int:
    """Most tokens that one step can commit: every draft and the bonus token."""
    return draft_tokens + 1


def expected_commit(acceptance_rate: float, draft_tokens: int) -> float:
    """Expected commit length at a constant acceptance rate per draft.

    (1 - alpha**(k+1)) / (1 - alpha): Leviathan, Kalman and Matias, arXiv:2211.17192, Eq. 1.
    """
    if not 0 <= acceptance_rate <= 1:
        raise ValueError(f"acceptance rate {acceptance_rate} is not between 0 and 1")
    if acceptance_rate == 1:
        return float(block_limit(draft_tokens))
    return (1 - acceptance_rate ** (draft_tokens + 1)) / (1 - acceptance_rate)
