// The course of every recorded call: an open record before the real call, and after it one
// transaction that counts it in the ledger and closes the record.
#pragma once

#include <utility>

#include "interpose/api/results.h"
#include "interpose/base/clock.h"
#include "interpose/device/timed.h"
#include "interpose/marks/sites.h"
#include "interpose/record/held_call.h"
#include "interpose/record/ring.h"

namespace tprof {

// One call, from before the real one to after it. Its maker fills all of `record` but what run()
// and close() write.
struct OpenCall {
  Thread& thread;
  bool wants_line;
  bool in_ring = false;
  Record& record = next_record(thread, wants_line, in_ring);

  // Makes the real call, between two reads of the clock. The record is visible while it runs.
  template <typename F>
  [[gnu::always_inline]] auto run(std::uint8_t function, F&& real) {
    if (any_extras()) [[unlikely]] {
      if (timing::on()) start_timing(thread, record, function);
      // This is where the wrapper returns to: all of this is inlined into it.
      if (sites::on()) record.site = sites::site_of(__builtin_return_address(0));
    }
    record.start_ns = now_ns();
    publish(thread, record, function, in_ring);
    const auto result = real();
    set_outcome(record, now_ns() - record.start_ns, static_cast<std::uint16_t>(result));
    return result;
  }

  // Counts a call that has returned and is no part of a group, and closes its record, at once.
  [[gnu::always_inline]] void close(LedgerKey::Words key, bool ok,
                                    std::uint64_t signature_name = 0) {
    if (timing::on()) [[unlikely]]
      stop_timing(thread, record, key, ok);
    Transaction transaction(thread);
    count_in_ledger(transaction, key, record, ok, signature_name);
    transaction.close(record);
    if (wants_line && !in_ring) count_lost_line(transaction);
  }
};

}  // namespace tprof
