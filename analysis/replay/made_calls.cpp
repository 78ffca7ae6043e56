#include "replay/made_calls.h"

#include "stats/totals.h"

namespace tprof::replay {

using read::Amounts;

void MadeCalls::call(const read::Event& e) {
  if (e.unfinished || e.captured || e.failed || !e.comm || !e.chosen) return;
  const Amounts one = stats::amounts_of(e);
  const Kind kind{*e.comm, e.name, e.dtype};
  lines[kind] += one;
  Made key{*e.comm, {}};
  key.call.function = e.name;
  key.call.dtype = e.dtype;
  key.call.count = e.count;
  key.call.reduce = e.reduce;
  key.call.root = e.peer.value_or(-1);
  key.call.bytes = e.bytes;
  const auto known = made.find(key);
  if (known != made.end()) {
    known->second += one;
  } else if (made.size() < kMost) {
    made.emplace(std::move(key), one);
  } else {
    others[kind] += one;
  }
}

Amounts some_of(const Amounts& all, std::uint64_t calls) {
  if (all.calls == 0) return {};
  Amounts some;
  some.calls = calls;
  some.count = all.count / all.calls * calls;
  some.elements = all.elements / all.calls * calls;
  some.bytes = all.bytes / all.calls * calls;
  return some;
}

Amounts less(const Amounts& all, const Amounts& part) {
  const auto rest = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  Amounts left;
  left.calls = rest(all.calls, part.calls);
  left.count = rest(all.count, part.count);
  left.elements = rest(all.elements, part.elements);
  left.bytes = rest(all.bytes, part.bytes);
  return left;
}

}  // namespace tprof::replay
