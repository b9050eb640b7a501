"""GPU figures by name."""

import pytest

from analysis.errors import InputError
from analysis.records.hardware import find_gpu


@pytest.mark.parametrize("name", ["RTX PRO 6000 Blackwell Server", "rtx pro 6000 blackwell server"])
def test_a_gpu_is_found_by_name_without_case(name: str) -> None:
    """24,064 CUDA cores at 128 each are 188 multiprocessors; 1.792 TB/s of GDDR7."""
    gpu = find_gpu(name)
    assert gpu.multiprocessors == 24_064 // 128 == 188
    assert gpu.bandwidth_tb_per_s == 1.792


def test_a_figure_that_is_not_known_is_undefined() -> None:
    assert find_gpu("H100 SXM").multiprocessors is None


def test_an_unknown_gpu_is_answered_with_those_there_are() -> None:
    with pytest.raises(InputError) as raised:
        find_gpu("A100")
    assert raised.value.place == "data/hardware/gpus.csv"
    assert raised.value.found == "no GPU 'A100'"
    assert "H100 SXM, H100 PCIe" in raised.value.expected
