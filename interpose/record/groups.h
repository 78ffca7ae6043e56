// Counts calls in the ledger: single calls when they return, and calls between ncclGroupStart and
// End when the outermost End issues them, or none.
#pragma once

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "interpose/record/thread.h"
#include "interpose/record/transaction.h"
#include "interpose/session/session.h"

struct CUgraph_st;  // what a cudaGraph_t points to

namespace tprof {

// The row of a communicator's signature to which its collective `seq` is added.
[[gnu::always_inline]] inline LedgerKey::Words signature_row(std::uint32_t comm,
                                                             std::uint64_t seq) {
  return key_words(kMetaSignature, Bucket{}, 0, Mode::direct,
                   static_cast<std::int8_t>(signature_bin(seq)), comm, 0);
}

// The rows in which a call is counted, and the expected ones.
struct CountedIn {
  LedgerKey::Words key;
  LedgerRow* row;
  // The hash of the function's name if it is part of its communicator's signature, else 0.
  std::uint64_t name;
  LedgerKey::Words signature_key;
  LedgerRow* signature_row;
};

// Counts one finished call in the ledger.
[[gnu::always_inline]] inline void count_in_ledger(Transaction& transaction, const CountedIn& in,
                                                   const Record& r, std::uint64_t dur_ns, bool ok) {
  const auto add = [&](const LedgerValues& from, LedgerValues& to, std::uint64_t count) {
    if (!ok) [[unlikely]] {
      to = from;
      ++to.failed;
      return;
    }
    to.calls = from.calls + 1;
    to.count = from.count + count;
    to.host_ns = from.host_ns + dur_ns;
    to.host_ns_max = std::max(from.host_ns_max, dur_ns);
    to.failed = from.failed;
  };
  transaction.change(in.row, in.key, r.count, add);
  if (!ok || in.name == 0) return;
  // The other values of such a row are 0.
  const auto sign = [&](const LedgerValues& from, LedgerValues& to, std::uint64_t) {
    to.calls = from.calls + 1;
    to.count = from.count + signature_mix(r.seq, in.name, r.count, r.dtype, r.peer, r.reduce);
  };
  transaction.change(in.signature_row, in.signature_key, 0, sign);
}
inline void count_in_ledger(Transaction& transaction, LedgerKey::Words key, const Record& r,
                            bool ok, std::uint64_t name) {
  const auto signature = signature_row(r.comm, r.seq);
  count_in_ledger(
      transaction,
      {key, transaction.expected(key), name, signature, transaction.expected(signature)}, r,
      r.dur_ns, ok);
}

// Counts a call that should have a line, but found the ring full.
inline void count_lost_line(Transaction& transaction) {
  ++transaction.values(key_words(kMetaDropped, Bucket{}, 0, Mode::direct, 0, 0, 0)).calls;
}

// A call inside ncclGroupStart/End: it is counted with its group or not at all. Until then it is in
// a record of the ring or else in a row of the ledger, so that it is known as unfinished if the
// process dies.
struct GroupedCall {
  Record* record;  // in the ring; null: none
  Record call;
  LedgerKey::Words key;
  std::uint64_t name_hash;              // for the signature; 0: not a collective
  std::atomic<std::uint64_t>* counter;  // its seq comes from this one; null: none
  ::CUgraph_st* graph;                  // it is captured into this one; null: none

  void hold(Transaction& transaction) const {
    if (record == nullptr) ++transaction.values(waiting(key)).calls;
  }
  void release(Transaction& transaction, bool ok) const {
    count_in_ledger(transaction, key, call, ok, name_hash);
    if (record != nullptr) return transaction.close(*record);
    --transaction.values(waiting(key)).calls;
    count_lost_line(transaction);
  }
};

// Returns the thread that counts the depth of groups, or null. A group may begin before any call
// counts: this does not begin the session.
inline Thread* grouping_thread() {
  Thread& t = t_thread;
  const std::uint32_t number = session::number();
  if (!t.at_rest() || number == session::kOff) return nullptr;
  if (t.groups_of != number || number == 0) [[unlikely]]
    forget_groups(t);
  return &t;
}

void group_started(Thread& t);

// Holds a call until its group ends. `r`: its record, in or outside the ring.
void add_to_group(Thread& t, const GroupedCall& call, Record& r);

// True if the End was not the outermost, or had no Start: nothing else is to be done.
inline bool inner_group_ended(Thread& t) {
  if (t.group_depth == 1) return false;
  if (t.group_depth != 0) --t.group_depth;
  return true;
}
// The outermost End (or ncclGroupSimulateEnd) has returned: the group's calls now count, or have
// failed.
void group_ended(Thread& t, std::uint64_t start_ns, std::uint64_t dur_ns, ncclResult_t result,
                 bool simulated);

}  // namespace tprof
