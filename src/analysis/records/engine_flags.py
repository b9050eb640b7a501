"""Names of the flags that decide a server's context, by engine, and how their values are read.

* **SGLang** ``srt/server_args.py``: ``--context-length``, an ``int``, in newer versions one that
  people read (``human_readable_int``); options are those of ``argparse``.
* **vLLM** ``utils/argparse_utils.py``: ``--max-model-len``, ``human_readable_int_or_auto``; an
  underscore in an option's name is a dash.
* **llama.cpp** ``common/arg.cpp``: ``-c``, ``--ctx-size`` and the variable ``LLAMA_ARG_CTX_SIZE``,
  which a flag overrides; no ``=`` form, no abbreviations, an underscore is a dash; read by
  ``std::stoi``, which takes ``32k`` as 32.
"""

import re
from dataclasses import dataclass

from analysis.model.context_limit import Engine

DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
PYTHON_INT = re.compile(r"\d+(?:_\d+)*")
C_INT = re.compile(r"\d+")


@dataclass(frozen=True)
class EngineFlags:
    """How one engine is told its context, and what else of its command line is read.

    ``others`` maps a name of ours to the engine's names of the flag. ``takes_value`` are flags
    behind which an unquoted variable stands for one value, and not for more flags.
    """

    context: tuple[str, ...]
    variable: str
    others: dict[str, tuple[str, ...]]
    switches: dict[str, tuple[str, ...]]
    takes_value: frozenset[str]
    default_port: int
    override: str


COMMON = {"host": ("--host",), "port": ("--port",)}

FLAGS: dict[Engine, EngineFlags] = {
    "SGLang": EngineFlags(
        context=("--context-length",),
        variable="",
        others=COMMON
        | {
            "model": ("--model-path", "--model"),
            "tp": ("--tensor-parallel-size", "--tp-size", "--tp"),
            "pp": ("--pipeline-parallel-size", "--pp-size", "--pp"),
            "dcp": ("--dcp-size", "--decode-context-parallel-size"),
            "kv_dtype": ("--kv-cache-dtype",),
            "mem_fraction": ("--mem-fraction-static",),
            "pool_limit": ("--max-total-tokens",),
            "max_requests": ("--max-running-requests",),
            "speculation": ("--speculative-algorithm",),
            "rope": ("--json-model-override-args",),
            "tls": ("--ssl-keyfile", "--ssl-certfile"),
            "config": ("--config",),
        },
        switches={"dp_attention": ("--enable-dp-attention",)},
        takes_value=frozenset(
            {
                *("--served-model-name", "--tokenizer-path", "--dtype", "--quantization"),
                *("--attention-backend", "--sampling-backend", "--api-key", "--chat-template"),
                *("--tool-call-parser", "--reasoning-parser", "--max-running-requests"),
                *("--speculative-draft-model-path", "--dp-size", "--dp", "--ep-size"),
                *("--nnodes", "--node-rank", "--dist-init-addr", "--log-level"),
            }
        ),
        default_port=30000,
        override="SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    ),
    "vLLM": EngineFlags(
        context=("--max-model-len",),
        variable="",
        others=COMMON
        | {
            "model": ("--model",),
            "tp": ("--tensor-parallel-size", "-tp"),
            "pp": ("--pipeline-parallel-size", "-pp"),
            "dcp": ("--decode-context-parallel-size", "-dcp"),
            "kv_dtype": ("--kv-cache-dtype",),
            "mem_fraction": ("--gpu-memory-utilization",),
            "pool_limit": ("--num-gpu-blocks-override",),
            "kv_bytes": ("--kv-cache-memory-bytes",),
            "speculation": ("--speculative-config",),
            "rope": ("--hf-overrides", "--rope-scaling"),
            "tls": ("--ssl-keyfile", "--ssl-certfile"),
            "config": ("--config",),
        },
        switches={},
        takes_value=frozenset(
            {
                *("--served-model-name", "--tokenizer", "--dtype", "--quantization", "--revision"),
                *("--max-num-seqs", "--max-num-batched-tokens", "--api-key", "--chat-template"),
                *("--tool-call-parser", "--reasoning-parser", "--data-parallel-size", "-dp"),
                *("--data-parallel-address", "--download-dir", "--block-size", "--swap-space"),
            }
        ),
        default_port=8000,
        override="VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    ),
    "llama.cpp": EngineFlags(
        context=("-c", "--ctx-size"),
        variable="LLAMA_ARG_CTX_SIZE",
        others=COMMON
        | {
            "model": ("-m", "--model", "-hf", "--hf-repo"),
            "slots": ("-np", "--parallel"),
            "key_dtype": ("-ctk", "--cache-type-k"),
            "value_dtype": ("-ctv", "--cache-type-v"),
            "speculation": ("-md", "--model-draft"),
            "rope": ("--rope-scaling", "--rope-scale", "--yarn-orig-ctx"),
            "tls": ("--ssl-key-file", "--ssl-cert-file"),
        },
        switches={"unified": ("-kvu", "--kv-unified")},
        takes_value=frozenset(
            {
                *("-ngl", "--n-gpu-layers", "--gpu-layers", "-t", "--threads", "-tb", "-b"),
                *("--batch-size", "-ub", "--ubatch-size", "-n", "--predict", "-a", "--alias"),
                *("--api-key", "--chat-template", "-sm", "-ts", "-mg", "-fa", "--mmproj"),
            }
        ),
        default_port=8080,
        override="",
    ),
}

VARIABLES = {
    "LLAMA_ARG_N_PARALLEL": "slots",
    "LLAMA_ARG_CACHE_TYPE_K": "key_dtype",
    "LLAMA_ARG_CACHE_TYPE_V": "value_dtype",
    "LLAMA_ARG_PORT": "port",
    "LLAMA_ARG_HOST": "host",
    "LLAMA_ARG_MODEL": "model",
    "LLAMA_ARG_KV_UNIFIED": "unified",
}
"""llama.cpp's variables for what is read of its command line (``common/arg.cpp``, ``set_env``)."""


def option_name(engine: Engine, word: str) -> str:
    """The name of an option as the engine compares it, without its ``=`` and value."""
    name = word.partition("=")[0]
    if name.startswith("--") and engine != "SGLang":
        return name.replace("_", "-")
    return name


def context_tokens(engine: Engine, value: str) -> int | None:
    """Tokens that a value of the context flag stands for.

    ``None`` where the engine chooses: vLLM's ``auto`` and ``-1`` (the most that fits), llama.cpp's
    ``0`` (the model's own). Raises ``ValueError`` for what the engine does not read as a whole
    number above zero, ``32K`` being 32,768 and ``32k`` 32,000 for vLLM and newer SGLang.
    """
    if engine == "vLLM" and (value == "-1" or value.lower() == "auto"):
        return None
    if engine == "llama.cpp":
        if C_INT.fullmatch(value):
            return int(value) or None
        raise ValueError("a whole number in digits; llama.cpp reads 32k as 32")
    if PYTHON_INT.fullmatch(value):
        tokens = int(value)
    elif human := HUMAN.fullmatch(value):
        number, unit = human.groups()
        if unit in BINARY and "." in number:
            raise ValueError(f"no decimals before {unit}, which counts in powers of two")
        tokens = (
            int(number) * BINARY[unit] if unit in BINARY else int(float(number) * DECIMAL[unit])
        )
    else:
        raise ValueError("a number of tokens")
    if tokens < 1:
        raise ValueError("a number above zero")
    return tokens
