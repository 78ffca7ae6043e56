#include "interpose/marks/missed_calls.h"

#include "interpose/base/held_signals.h"
#include "interpose/record/thread.h"

namespace tprof::missed {
namespace {

std::atomic<bool> g_watching{false};
// Depth of NCCL's nested ranges: only the outermost range is a call of the program.
thread_local constinit int t_level __attribute__((tls_model("initial-exec"))) = 0;

// A rank whose NCCL calls all bypass us is traced, too: its file reports that.
[[gnu::cold, gnu::noinline]] void count(Fn fn) {
  const KeepErrno keep_errno;
  const DepthGuard guard(t_thread);
  if (session::closed() && !session::in_exiting_thread()) return;
  if (!session::started() && !session::start()) return;
  Function& function = session::mapping().head().function[static_cast<std::size_t>(fn)];
  function.missed.fetch_add(1, std::memory_order_relaxed);
  if (session::closed()) session::late_call();
}

}  // namespace

void watch() {
  g_watching.store(true, std::memory_order_release);
  if (session::started()) publish(session::mapping().head());
}

int range_begins(Fn fn) {
  const int level = t_level++;
  if (level == 0 && t_thread.at_rest() && moves_data(fn) && session::number() != session::kOff)
      [[unlikely]] {
    count(fn);
  }
  return level;
}

int range_ends() {
  return t_level == 0 ? 0 : --t_level;
}

void publish(Head& head) {
  if (g_watching.load(std::memory_order_acquire)) {
    head.nccl_ranges.store(1, std::memory_order_relaxed);
  }
}

}  // namespace tprof::missed
