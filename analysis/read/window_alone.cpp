#include "read/window_alone.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <map>
#include <tuple>

#include "interpose/format/dtypes.h"
#include "interpose/format/thread_kind.h"
#include "read/events.h"

namespace tprof::read {
namespace {

using Key = std::tuple<Bucket, std::string, std::string, std::optional<std::int64_t>,
                       std::optional<std::int64_t>, std::int64_t, bool, ThreadKind>;

std::uint64_t size_of(std::string_view dtype) {
  const auto* known = std::ranges::find(kDtypes, dtype, &DtypeInfo::name);
  if (known != std::end(kDtypes)) return known->size;
  for (const std::uint32_t size : {1U, 2U, 4U, 8U}) {
    if (dtype == dtype_name(kDtypeByte, size)) return size;
  }
  return 0;  // its elements are not known
}

void add(const Event& e, Amounts& a) {
  if (e.unfinished) {
    ++a.unfinished;
    return;
  }
  if (e.failed) {
    ++a.failed;
    return;
  }
  const std::uint64_t size = size_of(e.dtype);
  const auto ns = static_cast<std::uint64_t>(e.dur_ns);
  a += {.calls = 1,
        .count = e.count,
        .elements = size == 0 ? 0 : e.bytes / size,
        .bytes = e.bytes,
        .host_ns = ns,
        .host_ns_max = ns};
}

}  // namespace

void count_lines_of_window(Trace& trace) {
  std::map<Key, Amounts> rows;
  std::map<std::int64_t, ThreadKind> threads;
  std::map<std::int64_t, std::uint64_t> collectives;  // by communicator
  Ledger ledger;
  read_lines(trace,
             {.event =
                  [&](const Process&, const Event& e) {
                    const auto thread = threads.find(e.thread);
                    const Key key{
                        e.bucket,   e.name,
                        e.dtype,    e.comm,
                        e.device,   tprof::bytes_class(e.bytes),
                        e.captured, thread == threads.end() ? ThreadKind::other : thread->second};
                    add(e, rows[key]);
                    if (e.collective() && !e.failed && !e.unfinished) ++collectives[*e.comm];
                    ledger.ts_ns = std::max(ledger.ts_ns, e.ts_ns + e.dur_ns);
                  },
              .thread = [&](const Process&,
                            const ThreadName& t) { threads[t.thread] = thread_kind(t.name); }});
  for (const auto& [key, amounts] : rows) {
    const auto& [bucket, name, dtype, comm, device, bytes_class, captured, thread] = key;
    ledger.rows.push_back({{.bucket = bucket,
                            .name = name,
                            .dtype = dtype,
                            .comm = comm,
                            .device = device,
                            .bytes_class = bytes_class,
                            .mode = captured ? Mode::captured : Mode::direct,
                            .thread = thread},
                           amounts});
  }
  for (const auto& [comm, n] : collectives) ledger.collectives.push_back({comm, n, {}, {}});
  Process& process = trace.processes.front();
  process.ledger = std::move(ledger);
  process.footer.emplace();
  process.footer->complete = !process.cut;
  process.footer->dropped["window"] = 0;  // its file can't tell how many
  process.end = End::closed;
}

}  // namespace tprof::read
