#!/usr/bin/env bash
# Run once by Gradescope, as root, when it makes the image in which submissions are graded.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null || ! python3 -m pip --version >/dev/null 2>&1 || ! ldconfig -p | grep libopenblas.so.0 >/dev/null; then
  apt-get update
  apt-get install -y --no-install-recommends python3 python3-pip libopenblas0
fi
# Newer distributions ask for the flag, older versions of pip do not know it.
install=(python3 -m pip install)
if "${install[@]}" --help | grep -e --break-system-packages >/dev/null; then install+=(--break-system-packages); fi
"${install[@]}" --no-index --no-deps "$source"/syslab-*.whl
python3 -c 'import torch, numpy' 2>/dev/null || "${install[@]}" torch numpy
python3 -m syslab --version
