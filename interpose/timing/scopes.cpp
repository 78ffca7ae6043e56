#include "interpose/timing/scopes.h"

#include "interpose/base/held_signals.h"
#include "interpose/timing/pairs.h"

namespace tprof::timing {

Pair* begin_scope(CUstream stream) {
  if (!on() || !by_events()) return nullptr;
  const KeepErrno keep_errno;
  Pair* pair = start(stream, kNoNumber).pair;
  // A scope is no call: nothing of what streams compute has to be kept for it.
  if (pair != nullptr) pair->since_ns.store(0, std::memory_order_relaxed);
  return pair;
}

void end_scope(Pair& pair, LedgerKey::Words key) {
  const KeepErrno keep_errno;
  pair.kind = Kind::scope;
  pair.of = {key, 1, 0, 0, 0, 0};
  pair.order = {};
  pair.number = next_number();
  end_pair(pair);
}

void drop_scope(Pair& pair) {
  drop({&pair});
}

}  // namespace tprof::timing
