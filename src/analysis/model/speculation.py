"""What speculation must commit to pay, and what a drafter can commit at most."""


def break_even_commit(speculative_step_ms: float, plain_step_ms: float) -> float:
    """Commit length above which speculation beats plain decoding: tau > step_spec/step_plain.

    Both steps at the same context and batch. Whether a block can reach it is another question:
    see ``block_limit``.
    """
    return speculative_step_ms / plain_step_ms


def speed_up(commit_length: float, break_even: float) -> float:
    """Throughput with speculation over that without: commit over break-even."""
    return commit_length / break_even


def can_reach(break_even: float, block_tokens: float) -> bool:
    """Whether a block, the most tokens that one step can commit, is as large as break-even.

    Where it is not, no text and no drafter makes speculation pay at these two steps.
    """
    return break_even <= block_tokens


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
