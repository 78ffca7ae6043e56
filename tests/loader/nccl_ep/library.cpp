// A libnccl_ep.so.0 that sums up its arguments: a wrapper that lost one would show.
#include <nccl.h>

#include <cstdint>

namespace {

using Word = std::uintptr_t;

unsigned long long g_sum;
int g_arguments;

template <typename... W>
ncclResult_t add(W... words) {
  int i = 0;
  ((g_sum += i++ < g_arguments ? words : 0), ...);
  return ncclSuccess;
}
ncclResult_t make(Word place) {
  static char made[8];
  static int n = 0;
  *reinterpret_cast<void**>(place) = &made[n++];
  return ncclSuccess;
}

}  // namespace

// They are declared with other arguments in nccl_ep.h.
#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

unsigned long long ep_arguments(int next) {
  g_arguments = next;
  return g_sum;
}

#define WORDS (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j)
ncclResult_t ncclEpDispatch WORDS {
  return add(a & 1, b & 1, c & 1, d, e, f, g, h, i, j);
}
ncclResult_t ncclEpCombine WORDS {
  return add(a & 1, b & 1, c & 1, d, e, f, g, h, i, j);
}
ncclResult_t ncclEpComplete WORDS {
  return add(a & 1, b, c, d, e, f, g, h, i, j);
}
ncclResult_t ncclEpCreateGroup(Word place, Word) {
  return make(place);
}
ncclResult_t ncclEpInitHandle(Word place, Word) {
  return make(place);
}
ncclResult_t ncclEpCreateHandle WORDS {
  add(0UL, b & 1, c & 0xffff, d, e, f, g, h, i, j);
  return make(a);
}
}
