"""GPU figures from ``data/hardware``, each with its source."""

from pydantic import PositiveFloat, PositiveInt

from analysis import paths
from analysis.errors import InputError
from analysis.records.checked import Record
from analysis.records.tables import read_table


class Gpu(Record):
    """Published peak figures of one GPU; TB and TFLOP are decimal."""

    gpu: str
    memory_bytes: PositiveInt | None = None
    bandwidth_tb_per_s: PositiveFloat
    multiprocessors: PositiveInt | None = None
    dense_bf16_tflops: PositiveFloat | None = None
    dense_fp8_tflops: PositiveFloat | None = None
    source: str
    note: str = ""


def all_gpus() -> list[Gpu]:
    """Every GPU of ``data/hardware/gpus.csv``."""
    return read_table(paths.HARDWARE, Gpu)


def find_gpu(name: str) -> Gpu:
    """The GPU of that name in ``data/hardware/gpus.csv``."""
    gpus = all_gpus()
    for gpu in gpus:
        if gpu.gpu.lower() == name.lower():
            return gpu
    known = ", ".join(gpu.gpu for gpu in gpus)
    raise InputError(paths.relative(paths.HARDWARE), f"no GPU {name!r}", f"one of {known}")
