#!/bin/bash
cd "$HOME/llama.cpp"
nohup ./build/bin/llama-server -m models/SmolLM2-135M-Instruct.Q4_1.gguf \
    --threads $(nproc) -c 4096 -np 2 --kv-unified --host 127.0.0.1 --port 8080 &
