#include "interpose/record/groups.h"

#include "interpose/api/results.h"
#include "interpose/record/communicators.h"
#include "interpose/record/graphs.h"
#include "interpose/record/transaction.h"

namespace tprof {
namespace {

std::atomic<std::uint32_t> g_groups{0};

Pages<GroupedCall>* pending_of(Thread& t) {
  if (t.pending == nullptr) t.pending = make_in_own_memory<Pages<GroupedCall>>();
  return t.pending;
}

// Adds a call of a group to the graph that will execute it. One kernel executes all calls of the
// group.
void captured_in_group(const GroupedCall& g) {
  graphs::captured_call(g.graph, {g.key, g.call.count});
}

// Pushes the record of the group: its End's time and result.
void push_group_record(Thread& t, Transaction& transaction, std::uint64_t start_ns,
                       std::uint64_t dur_ns, ncclResult_t result, bool simulated,
                       std::size_t calls) {
  bool in_ring = false;
  Record& r = next_record(t, true, in_ring);
  if (!in_ring) return;
  r = {};
  r.start_ns = start_ns;
  set_outcome(r, dur_ns, static_cast<std::uint16_t>(result));
  r.count = calls;
  r.peer = kNoPeer;
  r.group = t.group;
  r.sync = simulated;
  publish(t, r, kMetaGroup, true);
  transaction.close(r);
}

}  // namespace

void group_started(Thread& t) {
  if (t.group_depth++ == 0) t.group = g_groups.fetch_add(1, std::memory_order_relaxed) + 1;
}

void add_to_group(Thread& t, const GroupedCall& g, Record& r) {
  Pages<GroupedCall>* pending = pending_of(t);
  if (pending != nullptr) {
    pending->push_back(g);
    if (!pending->failed()) {
      if (g.record != nullptr) return;
      Transaction transaction(t);
      g.hold(transaction);
      transaction.close(r);
      return;
    }
  }
  // There is no memory to hold it: count it now rather than never.
  const bool ok = accepted(static_cast<ncclResult_t>(g.call.result));
  {
    Transaction transaction(t);
    count_in_ledger(transaction, g.key, g.call, ok, g.name_hash);
    transaction.close(r);
    if (g.record == nullptr) count_lost_line(transaction);
  }
  if (ok && g.graph != nullptr) captured_in_group(g);
}

void group_ended(Thread& t, std::uint64_t start_ns, std::uint64_t dur_ns, ncclResult_t result,
                 bool simulated) {
  t.group_depth = 0;
  if (t.pending == nullptr || t.pending->size() == 0) {
    t.group = 0;
    return;
  }
  const bool ok = accepted(result) && !simulated;
  {
    Transaction transaction(t);
    for (GroupedCall& g : *t.pending) {
      const auto own = static_cast<ncclResult_t>(g.call.result);
      if (g.record != nullptr && simulated) g.record->function = kMetaVoid;
      if (g.record != nullptr && !accepted(result) && accepted(own)) {
        g.record->result = static_cast<std::uint16_t>(result);
      }
      g.release(transaction, ok && accepted(own));
    }
    push_group_record(t, transaction, start_ns, dur_ns, result, simulated, t.pending->size());
  }
  for (const GroupedCall& g : *t.pending) {
    const bool captured = g.graph != nullptr && ok;
    if (captured && accepted(static_cast<ncclResult_t>(g.call.result))) captured_in_group(g);
  }
  if (!ok) {
    for (std::size_t i = t.pending->size(); i-- != 0;) {
      const GroupedCall& g = t.pending->begin()[i];
      comms::give_back(g.counter, g.call.seq);
    }
  }
  t.pending->clear();
  t.group = 0;
}

}  // namespace tprof
