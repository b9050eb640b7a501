"""The embedded server's own process: llama.cpp's server, until standard input closes.

Started by ``embedded``, which keeps the other end of standard input: when that process goes, by
whatever end, the pipe closes and so does the server. Prints ``listening URL`` once.
"""

import json
import os
import sys
import threading
from typing import Any


def main() -> None:
    """Serve with the options of the one argument, a JSON object."""
    options = json.loads(sys.argv[1])
    threading.Thread(target=_end_with_the_pipe, daemon=True).start()
    server = _server(options)
    print(f"listening {server.listening_address}", flush=True)
    threading.Event().wait()


def _end_with_the_pipe() -> None:
    sys.stdin.buffer.read()
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
    if options["speculation"] == "ngram-simple":
        kind = xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE
        params.speculative.types = [kind]
        params.speculative.ngram_simple.size_n = options["match_tokens"]
        params.speculative.ngram_simple.size_m = options["draft_tokens"]
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
