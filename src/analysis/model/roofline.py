"""How fast reading the KV cache could be: limits to hold a measured slope against."""


def bandwidth_slope_us(bytes_per_token: float, bandwidth_tb_per_s: float) -> float:
    """Microseconds to read one token of context once, at full memory bandwidth (1 TB = 10^12 B)."""
    return bytes_per_token / bandwidth_tb_per_s / 1e6


def occupancy_ceiling(thread_blocks: int, multiprocessors: int) -> float:
    """Slow-down explained if at most ``thread_blocks`` of the multiprocessors have work.

    A kernel that walks the prefix serially in one block per (sequence, head) can use no more
    multiprocessors than it has blocks.
    """
    if thread_blocks < 1 or multiprocessors < 1:
        raise ValueError("thread blocks and multiprocessors are at least one")
    return max(1.0, multiprocessors / thread_blocks)
