#!/bin/sh
# Install locked requirements into a virtual environment: install_requirements.sh ENVIRONMENT REQUIREMENTS [CPU_INDEX]
#
# CPU_INDEX, an index of PyTorch's builds without CUDA, changes PyTorch's CPU image alone: torch and torchvision come
# from there, and the packages of CUDA are left out. The versions stay locked; the hashes do not apply, because they are
# those of the builds on PyPI.
set -eu
pip=$1/bin/pip
requirements=$2
cpu_index=${3:-}

case $requirements in
    *-cpu.txt) ;;
    *) cpu_index= ;;
esac
if [ -z "$cpu_index" ] || ! grep -q '^torch==' "$requirements"; then
    exec "$pip" install --no-cache-dir --require-hashes -r "$requirements"
fi
versions=$(sed -E '/^ +--hash/d; s/ \\$//; s/ ;.*//; /^(nvidia-|triton|cuda-)/d' "$requirements")
torch=$(printf '%s\n' "$versions" | sed -nE 's/^(torch|torchvision)==(.+)$/\1==\2+cpu/p')
others=$(printf '%s\n' "$versions" | grep -vE '^(torch|torchvision)==')
# Unquoted: one requirement per word.
# shellcheck disable=SC2086
"$pip" install --no-cache-dir --no-deps --extra-index-url "$cpu_index" $torch
# shellcheck disable=SC2086
"$pip" install --no-cache-dir --no-deps $others
