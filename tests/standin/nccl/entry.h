// What the files of entry points share.
#pragma once

#include <nccl.h>

// As in NCCL, every ncclX has the alias pncclX, for profilers (nccl/src/include/core.h, PROFAPI).
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define PNCCL(name) extern "C" decltype(name) p##name __attribute__((alias(#name)))
