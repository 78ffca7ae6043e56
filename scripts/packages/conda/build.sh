#!/bin/bash
# recipe.yaml runs this in the source: it builds with the libraries of $PREFIX, and installs there.
set -eu
case ${target_platform:-} in
  linux-aarch64) machine=sbsa-linux ;; # as NVIDIA calls it
  *) machine=x86_64-linux ;;
esac
export LDFLAGS=${LDFLAGS:-}
export LDFLAGS="${LDFLAGS//-Wl,-rpath,$PREFIX\/lib/}" # recipe.yaml says who gets it
export CUDA_HOME=$PREFIX/targets/$machine NCCL_HOME=$PREFIX
# shellcheck disable=SC2086 # a list of words
cmake -S . -B build-conda -G Ninja ${CMAKE_ARGS:-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" \
  -DTPROF_TESTS=OFF -DTPROF_LINK_IN=OFF -DTPROF_CHARTJS="$PWD/chartjs/chart.js" \
  -DTPROF_LIBUNWIND_SOURCE="$PWD/libunwind"
cmake --build build-conda -j "${CPU_COUNT:-1}"
cmake --install build-conda --strip
