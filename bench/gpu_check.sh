#!/usr/bin/env bash
# One prepared run on a machine with a GPU, under five minutes: proofs, agreement, training, speed.
# Usage: bash bench/gpu_check.sh [FOLDER [MODE]]; the log goes to FOLDER/gpu_check.log (default: the current one).
# With a MODE of torch.compile, default or reduce-overhead (CUDA graphs), four minutes more: what compiling gains.
set -euo pipefail
cd "$(dirname "$0")/.."
log="${1:-.}/gpu_check.log"
export PYTHONPATH="src${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$log"
timeout 290 python3 bench/gpu_check.py --device cuda 2>&1 | tee -a "$log"
if [ -n "${2:-}" ]; then
  timeout 240 python3 bench/gpu_check.py --device cuda --compile "$2" --rounds 3 2>&1 | tee -a "$log"
fi
