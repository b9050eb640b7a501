#!/bin/sh
# café: this comment is Latin-1, and the last line has no end
docker run --rm --gpus all -p 127.0.0.1:9000:8000 \
  vllm/vllm-openai:v0.11.0 --model Qwen/Qwen3-8B \
  --max_model_len 32k   --tensor-parallel-size 2