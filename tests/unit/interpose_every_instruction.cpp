// Recorded calls, as recovery would find them after each instruction.
#include <sys/mman.h>
#include <unistd.h>

#include "catch2.h"
#include "interpose_single_step.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::test;

namespace {

// The child's own counts, in memory that the parent sees.
struct Counts {
  std::atomic<std::uint64_t> entered, inside, returned, failed;
};

void record_calls(Thread& t, ncclComm_t comm, Counts& counts) {
  const auto one = [&](ncclResult_t answer) {
    ++counts.entered;
    all_reduce(t, comm, 10, ncclFloat32, ncclSum, [&] {
      ++counts.inside;
      return answer;
    });
    ++(answer == ncclSuccess ? counts.returned : counts.failed);
  };
  one(ncclSuccess);
  one(ncclInvalidArgument);
  one(ncclSuccess);
  const auto group = [&](ncclResult_t answer) {
    group_started(t);
    for (int i = 0; i < 3; ++i) {
      ++counts.entered;
      all_reduce(t, comm, 10, ncclFloat32, ncclSum, [&] {
        ++counts.inside;
        return ncclSuccess;
      });
    }
    group_ended(t, 0, 0, answer, false);
    (answer == ncclSuccess ? counts.returned : counts.failed) += 3;
  };
  group(ncclSuccess);
  group(ncclInternalError);
  one(ncclSuccess);
  // The ring of 8 is full by now. A copy comes between: both use the same place for the open call.
  one(ncclSuccess);
  copy_to_device(t, 77);
  one(ncclSuccess);
  group(ncclSuccess);
  group(ncclInternalError);
}

struct Recovered {
  LedgerValues ledger;  // of all rows
  std::uint64_t lines, dropped, open, signed_calls;
  bool whole;  // no open call has another one's fields
};

Recovered recover(const View& view) {
  Recovered r{};
  r.whole = true;
  const ThreadArea& t = *view.thread(0);
  view.each_row([&](const LedgerRow& row, const ThreadArea&) {
    const LedgerKey key = key_of(row);
    const LedgerValues v = read_row(row, t.committed);
    if (key.function == kMetaDropped) r.dropped += v.calls;
    if (key.function == kMetaSignature) r.signed_calls += v.calls;
    if (key.function >= kMetaThread || is_copy(key.bucket)) return;
    if (key.kind == RowKind::waiting) {
      r.open += v.calls;
      return;
    }
    r.ledger.calls += v.calls;
    r.ledger.count += v.count;
    r.ledger.failed += v.failed;
  });
  const Record* ring = view.ring(t);
  for (std::uint64_t n = 0; n < t.head; ++n) {
    const Record& record = ring[n % t.capacity];
    r.lines += record.txn != 0 && record.txn <= t.committed && record.function < kMetaThread;
  }
  each_open_call(view, [&](const Record& record, const ThreadArea&) {
    if (view.function(record.function) == nullptr) return;  // of the group, not of a call
    const bool copy = record.function == static_cast<std::uint8_t>(Fn::cudaMemcpyAsync);
    r.open += !copy;
    r.whole &= is_copy(record.bucket) == copy && record.count == (copy ? 77 : 10);
  });
  return r;
}

std::uint64_t copies(const View& view) {
  std::uint64_t n = 0;
  view.each_row([&](const LedgerRow& row, const ThreadArea& area) {
    if (is_copy(key_of(row).bucket)) n += read_row(row, area.committed).calls;
  });
  return n;
}

}  // namespace

TEST_CASE("killed after any instruction, all of a call or group is there or nothing of it") {
  const int file = memfd_create("ring", 0);
  World world(file);
  Thread& t = world.thread(1, 8);
  ncclComm_t comm = world.communicator(2);
  std::uint64_t wrong = 0;
  Recovered r{};
  const auto must = [&](bool holds) { wrong += !holds; };
  const auto look = [&](const View& view, const Counts& counts) {
    const std::uint64_t calls_before = r.ledger.calls;
    r = recover(view);
    const std::uint64_t traced = r.ledger.calls + r.ledger.failed;
    must(r.ledger.calls >= counts.returned && r.ledger.failed >= counts.failed);
    must(traced + r.open <= counts.entered);
    must(traced + r.open >= counts.inside);
    must(r.whole);
    must(r.ledger.count == 10 * r.ledger.calls);
    must(r.lines + r.dropped == traced + copies(view));
    must(r.signed_calls == r.ledger.calls);
    must(r.ledger.calls >= calls_before);
  };
  const std::uint64_t steps = at_every_instruction<Counts>(
      file, [&](Counts& counts) { record_calls(t, comm, counts); }, look);
  close(file);
  if (steps == 0) return;
  CHECK(wrong == 0);
  CHECK(steps > 1000);
  CHECK(r.ledger.calls == 11);
  CHECK(r.ledger.failed == 7);
  CHECK(r.open == 0);
  CHECK(r.dropped > 0);
}
