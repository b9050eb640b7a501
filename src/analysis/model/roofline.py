"""How fast attention over the KV cache could be: limits to hold a measured slope against."""

from math import floor


def bandwidth_slope_us(bytes_per_token: float, bandwidth_tb_per_s: float) -> float:
    """Microseconds to read one token of context once, at full memory bandwidth (1 TB = 10^12 B)."""
    _refuse_not_above_zero(bandwidth_tb_per_s, "bandwidth")
    return bytes_per_token / bandwidth_tb_per_s / 1e6


def occupancy_ceiling(thread_blocks: int, multiprocessors: int) -> float:
    """Slow-down explained if at most ``thread_blocks`` of the multiprocessors have work.

    A kernel that walks the prefix serially in one block per (sequence, head) can use no more
    multiprocessors than it has blocks.
    """
    if thread_blocks < 1 or multiprocessors < 1:
        raise ValueError("thread blocks and multiprocessors are at least one")
    return max(1.0, multiprocessors / thread_blocks)


def arithmetic_slope_us(flop_per_token: float, tflops: float) -> float:
    """Microseconds of arithmetic for one token of context, at a peak in TFLOP/s."""
    _refuse_not_above_zero(tflops, "peak of arithmetic")
    return flop_per_token / tflops / 1e6


def compute_bound_from(flop_per_byte: float, bandwidth_tb_per_s: float, tflops: float) -> int:
    """Fewest queries at which arithmetic, and no longer memory, sets the limit.

    ``flop_per_byte`` is the intensity of one query, where all queries share one reading.
    """
    _refuse_not_above_zero(tflops, "peak of arithmetic")
    _refuse_not_above_zero(bandwidth_tb_per_s, "bandwidth")
    return floor(tflops / bandwidth_tb_per_s / flop_per_byte) + 1


def _refuse_not_above_zero(value: float, what: str) -> None:
    if not 0 < value < float("inf"):
        raise ValueError(f"a {what} of {value} is not above zero")
