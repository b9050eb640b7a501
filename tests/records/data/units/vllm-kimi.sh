#!/usr/bin/env bash
set -euo pipefail

export VLLM_ATTENTION_BACKEND=TRITON_MLA
EXTRA="--trust-remote-code --enable-prefix-caching"
echo "Starting vllm serve with --max-model-len of the model"

if ! nvidia-smi > /dev/null 2>&1; then
  exit 1
fi
exec /opt/vllm/bin/vllm serve nvidia/Kimi-K2.6-NVFP4 \
  --tensor-parallel-size 8 --kv-cache-dtype fp8 \
  --max-model-len="256K"  \
  --gpu-memory-utilization 0.94 --port 8001 $EXTRA \
  > "logs/vllm-$(date +%F).log" 2>&1
