"""The embedded server's own process: llama.cpp's server, until standard input closes.

Started by ``embedded``, which keeps the other end of standard input: when that process goes, by
whatever end, the pipe closes and so does the server; a ``llama-server`` of the user's is looked
after in the same way.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Serve with the options of the one argument, a JSON object."""
    options = json.loads(sys.argv[1])
    if "program" in options:
        program = subprocess.Popen(options["program"], stdin=subprocess.DEVNULL)
        threading.Thread(target=_end_with_the_pipe, args=(program.kill,), daemon=True).start()
        signal.signal(signal.SIGTERM, lambda *_: program.terminate())
        code = program.wait()
        sys.exit(code if code >= 0 else 128 - code)
    threading.Thread(target=_end_with_the_pipe, daemon=True).start()
    server = _server(options)  # serves as long as it is held
    threading.Event().wait()
    del server


def _end_with_the_pipe(last: Callable[[], None] = lambda: None) -> None:
    sys.stdin.buffer.read()
    last()
    os._exit(0)


def _server(options: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options["model"]
    params.n_parallel = options["slots"]
    params.n_ctx = options["slots"] * options["context_tokens"]
    params.cpuparams.n_threads = options["threads"]
    params.cpuparams_batch.n_threads = options["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = options["port"]
    params.endpoint_metrics = True
    params.endpoint_slots = True
    if options["verbosity"] is not None:
        params.verbosity = options["verbosity"]
    if options["speculation"] == "ngram-simple":
        kind = xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE
        params.speculative.types = [kind]
        params.speculative.ngram_simple.size_n = options["match_tokens"]
        params.speculative.ngram_simple.size_m = options["draft_tokens"]
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
