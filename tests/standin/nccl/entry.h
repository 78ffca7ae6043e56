// Shared by the files with entry points.
#pragma once

#include <nccl.h>

// As in NCCL, every ncclX has the alias pncclX, for profilers (nccl/src/include/core.h, PROFAPI).
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define PNCCL(name) extern "C" decltype(name) p##name __attribute__((alias(#name)))
