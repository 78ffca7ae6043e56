// The wrappers of functions that affect the counts in ways that no training framework uses: they
// pass calls on, and the coverage reports them. Changes of graphs begin no session: a forked child
// may make them as it exits.
#include "interpose/api/results.h"
#include "interpose/format/coverage.h"
#include "interpose/hook/wrapper.h"
#include "interpose/session/coverage.h"

namespace tprof::uncounted {
namespace {

[[gnu::noinline]] bool counts(Note what, Thread* (*thread)()) {
  return (what == Note::uncounted || session::started()) && thread() != nullptr;
}
[[gnu::noinline]] void note(Note what, Fn fn) {
  coverage::note(what, info(fn).name.data());
}

}  // namespace
}  // namespace tprof::uncounted

// All arguments are passed as integers, at most nine. The function ignores those that it does not
// have.
#define NINE (void* a, void* b, void* c, void* d, void* e, void* f, void* g, void* h, void* i)
#define UNCOUNTED(result, thread, function, what)                            \
  TPROF_ANY(result, function, NINE, {                                        \
    const bool counts = uncounted::counts(Note::what, thread);               \
    const result done = real(a, b, c, d, e, f, g, h, i);                     \
    if (counts && accepted(done)) uncounted::note(Note::what, Fn::function); \
    return done;                                                             \
  })

#define WRAPPER(meant, function, what) UNCOUNTED(cudaError_t, recording_thread, function, what)
TPROF_CUDART_UNCOUNTED(TPROF_ONE, TPROF_BOTH)
#undef WRAPPER
#define WRAPPER(meant, function, name, what) UNCOUNTED(CUresult, recording_driver, function, what)
TPROF_CUDA_UNCOUNTED(TPROF_ONE, TPROF_BOTH)
#undef WRAPPER
#undef UNCOUNTED
#undef NINE
