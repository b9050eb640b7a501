"""Limits to hold a measured slope against."""

import pytest

from analysis.model.roofline import bandwidth_slope_us, occupancy_ceiling


def test_70272_bytes_at_1_792_tb_per_s_take_39_2_nanoseconds() -> None:
    assert f"{1000 * bandwidth_slope_us(70_272, 1.792):.1f}" == "39.2"


def test_8_thread_blocks_on_188_multiprocessors_explain_at_most_23_5_times() -> None:
    assert occupancy_ceiling(8, 188) == 23.5


@pytest.mark.parametrize("blocks", [188, 512])
def test_a_full_gpu_is_not_slowed_down_by_its_block_count(blocks: int) -> None:
    assert occupancy_ceiling(blocks, 188) == 1.0


@pytest.mark.parametrize(("blocks", "multiprocessors"), [(0, 188), (8, 0), (-1, 188)])
def test_no_blocks_or_no_multiprocessors_are_refused(blocks: int, multiprocessors: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        occupancy_ceiling(blocks, multiprocessors)
