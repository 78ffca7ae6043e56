// The lines with sums: tprof_graph, tprof_ledger, tprof_footer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>

#include "interpose/format/coverage.h"
#include "interpose/write/lines.h"
#include "interpose/write/scope_sums.h"
#include "interpose/write/totals.h"

namespace tprof {

// The exact totals of a process at one moment.
struct Sums {
  Pages<Total> all;         // every row, including replays, per graph
  Pages<Total> rows;        // only calls, summed over graphs: the ledger's rows
  Pages<Total> signatures;  // by communicator and bin
  std::uint64_t others;     // calls without their own row
  std::uint64_t unknown;    // launches of unknown graphs
  bool by_comm;             // all calls that a communicator's other ranks also make have such a row

  // True if memory was short: they are then incomplete, and must not be written.
  bool failed() const { return all.failed() || rows.failed() || signatures.failed(); }
};

[[gnu::cold]] inline void collect(const View& view, Sums& sums, bool count_open_calls) {
  collect_totals(view, sums.all);
  for (Total& t : sums.all) {
    if (!count_open_calls) t.unfinished = 0;
  }
  if (count_open_calls) {
    each_open_call(view, [&](const Record& r, const ThreadArea& thread) {
      if (view.function(r.function) == nullptr) return;
      LedgerKey key = key_of(view, r);
      key.thread = thread.kind;
      sums.all.push_back({key, {}, 1});
    });
    each_phase(view, [&](const Record& r, std::uint32_t) {
      LedgerKey key{};
      key.function = kMetaLife;
      key.dtype = r.dtype;
      sums.all.push_back({key, {}, 1});
    });
  }
  sums.rows.clear();
  sums.signatures.clear();
  sums.others = sums.unknown = 0;
  sums.by_comm = true;
  for (Total t : sums.all) {
    const bool other = t.key.function == kOtherFunctions && t.key.mode != Mode::captured;
    if (other) sums.others += t.values.calls;
    if (t.key.function == kMetaLaunch && t.key.graph == 0) sums.unknown += t.values.calls;
    const bool no_comm = t.key.function == kMetaSignature && t.key.comm == 0;
    if (no_comm || (other && t.key.bucket == Bucket::P2P)) sums.by_comm = false;
    const bool of_comm = t.key.comm != 0 && t.key.bytes_class >= 0 && t.key.bytes_class <= 64;
    if (t.key.function == kMetaSignature && of_comm) sums.signatures.push_back(t);
    if (t.key.function >= kMaxDataFunctions || t.key.mode == Mode::in_graph) continue;
    if (t.values.calls + t.values.failed + t.unfinished == 0) continue;
    t.key.graph = 0;
    sums.rows.push_back(t);
  }
  merge_totals(sums.rows);
  std::sort(sums.signatures.begin(), sums.signatures.end(), [](const Total& a, const Total& b) {
    return std::tie(a.key.comm, a.key.bytes_class) < std::tie(b.key.comm, b.key.bytes_class);
  });
}

// Writes a row's key.
inline void row_key(Text& out, const View& view, const LedgerKey& key) {
  out << "{\"bucket\":\"" << bucket_name(key.bucket) << "\",\"name\":\""
      << view.function_name(key.function) << "\",\"dtype\":\""
      << dtype_name(key.dtype, view.head().copy_element_size) << "\",\"comm\":";
  const bool copy = is_copy(key.bucket);
  out.number_or_null(key.comm != 0 && !copy, key.comm);
  if (copy) {
    out << ",\"device\":";
    out.number_or_null(key.comm != 0, key.comm - 1);
    host_memory_arg(out, key.host_memory);
  }
  out << ",\"bytes_class\":" << std::int32_t{key.bytes_class};
}

inline void row_thread(Text& out, ThreadKind kind) {
  if (kind == ThreadKind::autograd) out << ",\"thread\":\"" << kAutogradThread << '"';
  if (kind == ThreadKind::mixed) out << ",\"thread\":null";
}

inline void row_amounts(Text& out, const View& view, const Total& t) {
  const Amount a =
      amount(view, t.key.function, t.key.bucket, t.key.dtype, t.key.comm, t.values.count);
  out << ",\"calls\":" << t.values.calls << ",\"count\":" << t.values.count
      << ",\"elements\":" << a.elements << ",\"bytes\":" << a.bytes;
}

// Collects, in order, the contents of the graphs from `from` on.
[[gnu::cold]] inline void collect_graphs(const View& view, Sums& sums, std::uint32_t from) {
  sums.all.clear();
  view.each_row([&](const LedgerRow& row, const ThreadArea& thread) {
    const LedgerKey key = key_of(row);
    if (key.mode != Mode::in_graph || key.graph < from) return;
    const LedgerValues values = read_row(row, thread.committed);
    if (values.calls != 0) sums.all.push_back({key, values, 0});
  });
  merge_totals(sums.all);
  std::sort(sums.all.begin(), sums.all.end(), [](const Total& a, const Total& b) {
    return std::tuple(a.key.graph, a.key.low(), a.key.comm) <
           std::tuple(b.key.graph, b.key.low(), b.key.comm);
  });
}

// Writes the contents of graph `index`, whose rows begin at `t`; moves `t` past them. The line of
// an executable graph only names its source.
[[gnu::cold]] inline void graph_line(Text& out, const View& view, const Total*& t, const Total* end,
                                     std::uint32_t index) {
  const Graph* g = view.graph(index);
  if (g == nullptr) return;
  open_line(out, view, LineKind::graph, 0) << ",\"args\":{\"graph\":" << index << ",\"ts\":";
  timestamp(out, view, g->made_ns) << ",\"source\":";
  out.number_or_null(g->kind == GraphKind::executable && g->source != 0, g->source)
      << ",\"calls\":[";
  Comma comma;
  for (; t != end && t->key.graph <= index; ++t) {
    if (t->key.graph != index) continue;
    row_key(out << comma.next(), view, t->key);
    row_amounts(out, view, *t);
    out << '}';
  }
  out << "]}},\n";
}

// {"comm":1,"collectives":5,"signature":"…","marks":["…",…]}: marks[k] is the signature after 2^k.
// `t`: the beginning of the communicator's bins, if any; moved past them.
[[gnu::cold]] inline void comm_signature(Text& out, const Total*& t, const Total* end,
                                         std::uint32_t comm) {
  std::uint64_t collectives = 0;
  std::uint64_t signature = 0;
  std::uint64_t marks[64];
  int known = 0;
  for (; t != end && t->key.comm == comm; ++t) {
    collectives += t->values.calls;
    signature += t->values.count;
    const unsigned bin = static_cast<std::uint8_t>(t->key.bytes_class);
    const bool whole = bin < 64 && collectives == std::uint64_t{1} << bin;
    if (whole && known < 64) marks[known++] = signature;
  }
  out << "{\"comm\":" << comm << ",\"collectives\":" << collectives << ",\"signature\":";
  out.hex16(signature) << ",\"marks\":[";
  Comma comma;
  for (int i = 0; i < known; ++i) (out << comma.next()).hex16(marks[i]);
  out << "]}";
}

// Writes the program's allocated memory, by place; nothing if it is not tracked.
[[gnu::cold]] inline void memory_array(Text& out, const Head& head) {
  if (head.memory_known.load(std::memory_order_acquire) == 0) return;
  out << ",\"memory\":[";
  Comma comma;
  for (std::uint8_t place = 0; place < kMemoryPlaces; ++place) {
    const std::uint64_t bytes = head.memory[place].bytes.load(std::memory_order_acquire);
    const std::uint64_t peak = head.memory[place].peak.load(std::memory_order_acquire);
    if (peak == 0) continue;
    out << comma.next() << "{\"kind\":\"" << memory_kind(place) << "\",";
    if (place <= kOtherDevice) {
      out << "\"device\":";
      out.number_or_null(place != kOtherDevice, std::uint32_t{place}) << ',';
    }
    out << "\"bytes\":" << bytes << ",\"peak\":" << peak << '}';
  }
  out << ']';
}

// Writes the time of the calls of communicators' lives, if any.
[[gnu::cold]] inline void life_array(Text& out, const View& view, const Pages<Total>& all) {
  Pages<Total> lives;
  for (const Total& t : all) {
    if (t.key.function == kMetaLife) lives.push_back(t);
  }
  merge_totals(lives);
  if (lives.failed()) out.fail();
  if (lives.size() == 0) return;
  out << ",\"life\":[";
  Comma comma;
  for (const Total& t : lives) {
    out << comma.next() << "{\"name\":\"" << view.any_function_name(t.key.dtype)
        << "\",\"calls\":" << t.values.calls << ",\"failed\":" << t.values.failed
        << ",\"unfinished\":" << t.unfinished << ",\"host_ns\":" << t.values.host_ns
        << ",\"host_ns_max\":" << t.values.host_ns_max << '}';
  }
  out << ']';
}

// Writes the ledger of the whole run up to now. `epoch`: how many epochs were ended by resets
// before.
[[gnu::cold]] inline void ledger_line(Text& out, const View& view, Sums& sums, std::uint64_t now_ns,
                                      std::uint32_t epoch, std::string_view reason,
                                      bool count_open_calls) {
  collect(view, sums, count_open_calls);
  if (sums.failed()) out.fail();
  open_line(out, view, LineKind::ledger, 0)
      << ",\"args\":{\"epoch\":" << epoch << ",\"reason\":\"" << reason << "\",\"ts\":";
  timestamp(out, view, now_ns) << ",\"rows\":[";
  Comma row;
  for (const Total& t : sums.rows) {
    row_key(out << row.next(), view, t.key);
    out << ",\"mode\":\"" << mode_name(t.key.mode) << '"';
    row_thread(out, t.key.thread);
    row_amounts(out, view, t);
    out << ",\"host_ns\":" << t.values.host_ns << ",\"host_ns_max\":" << t.values.host_ns_max
        << ",\"device_ns\":" << t.timed.host_ns << ",\"device_timed\":" << t.timed.calls;
    if (t.timed.calls != 0) {
      const std::uint64_t bytes =
          amount(view, t.key.function, t.key.bucket, t.key.dtype, t.key.comm, t.timed.count).bytes;
      out << ",\"device_ns_max\":" << t.timed.host_ns_max << ",\"device_bytes\":" << bytes;
    }
    if (t.exposed.calls != 0) {
      out << ",\"exposure_known\":" << t.exposed.calls
          << ",\"exposure_known_ns\":" << t.exposed.count << ",\"exposed_ns\":" << t.exposed.host_ns
          << ",\"exposed_ns_max\":" << t.exposed.host_ns_max << ",\"late\":" << t.exposed.failed;
    }
    out << ",\"failed\":" << t.values.failed << ",\"unfinished\":" << t.unfinished << '}';
  }
  out << "],\"comms\":[";
  const std::uint32_t comms = sums.by_comm ? View::entries(view.head().comms) : 0;
  const Total* bin = sums.signatures.begin();
  Comma comm;
  for (std::uint32_t i = 1; i <= comms; ++i) {
    comm_signature(out << comm.next(), bin, sums.signatures.end(), i);
  }
  out << ']';
  life_array(out, view, sums.all);
  scopes_array(out, view, sums.all);
  memory_array(out, view.head());
  out << "}},\n";
}

// Writes "dropped":{"quota":2}: numbers by reason. Writes nothing if there are none, unless
// `always`.
template <typename Dropped, std::size_t N>
void drops(Text& out, std::string_view key, const Dropped (&dropped)[N],
           const char* const (&reasons)[N], bool always = false) {
  const auto any = [](std::uint64_t n) { return n != 0; };
  if (!always && std::none_of(dropped, dropped + N, any)) return;
  out << key << '{';
  Comma comma;
  for (std::size_t i = 0; i < N; ++i) {
    if (const std::uint64_t n = dropped[i]; n != 0) {
      out << comma.next() << '"' << reasons[i] << "\":" << n;
    }
  }
  out << '}';
}

inline std::uint64_t dropped_by(const Sums& sums, MetaFunction what, std::size_t reason) {
  std::uint64_t calls = 0;
  for (const Total& t : sums.all) {
    const bool its =
        t.key.function == what && static_cast<std::uint8_t>(t.key.bytes_class) == reason;
    calls += its ? t.values.calls : 0;
  }
  return calls;
}

// yes: the process ended the file itself. no: a reader completed it. partial: a reader did, and a
// part of the counts was lost. snapshot: written by the living process, for readers without access
// to the ring file.
enum class Complete : std::uint8_t { yes, no, partial, snapshot };

// Writes the NCCL calls known from its NVTX ranges that no wrapper saw. Writes nothing if its
// ranges did not arrive.
[[gnu::cold]] inline void missed_array(Text& out, const View& view) {
  const Head& head = view.head();
  if (head.nccl_ranges.load(std::memory_order_relaxed) == 0) return;
  out << ",\"missed\":[";
  Comma comma;
  for (std::uint32_t n = 1; n < view.functions(); ++n) {
    const std::uint64_t calls = head.function[n].missed.load(std::memory_order_relaxed);
    if (calls == 0) continue;
    out << comma.next() << "{\"name\":\"" << bounded_text(head.function[n].name)
        << "\",\"calls\":" << calls << '}';
  }
  out << ']';
}

// Writes how long each device was busy with computation kernels, if known.
[[gnu::cold]] inline void compute_arrays(Text& out, const Head& head) {
  const std::uint64_t window_ns = head.compute_window_ns.load(std::memory_order_relaxed);
  if (window_ns == 0) return;
  out << ",\"compute\":{\"window_ns\":" << window_ns << ",\"devices\":[";
  Comma comma;
  for (std::uint32_t i = 0; i < kTimedDevices; ++i) {
    const std::uint64_t busy_ns = head.compute[i].load(std::memory_order_relaxed);
    if (busy_ns == 0) continue;
    out << comma.next() << "{\"device\":" << i << ",\"busy_ns\":" << busy_ns << '}';
  }
  out << "]}";
}

// Writes the last object of the file, without a comma. Needs `sums` from the closing ledger.
[[gnu::cold]] inline void footer_line(Text& out, const View& view, const Sums& sums,
                                      const Progress& p, Complete complete) {
  const Head& head = view.head();
  std::uint64_t dropped[kDroppedCount];
  for (std::size_t i = 0; i < kDroppedCount; ++i) dropped[i] = p.dropped[i];
  dropped[static_cast<std::size_t>(Dropped::ring)] = dropped_by(sums, kMetaDropped, 0);
  std::uint64_t range_dropped[kRangeDroppedCount];
  for (std::size_t i = 0; i < kRangeDroppedCount; ++i) {
    range_dropped[i] = p.range_dropped[i] + dropped_by(sums, kMetaRangeDropped, i);
  }
  open_line(out, view, LineKind::footer, 0) << ",\"args\":{";
  drops(out, "\"dropped\":", dropped, kDroppedNames, true);
  drops(out, ",\"ranges_dropped\":", range_dropped, kRangeDroppedNames);
  if (p.steps_dropped != 0) out << ",\"steps_dropped\":" << p.steps_dropped;
  if (p.written.window_files != 0) {
    out << ",\"windows\":{\"files\":" << p.written.window_files
        << ",\"lines\":" << p.written.window_calls << '}';
  }
  drops(out, ",\"timing_lost\":", head.timing_lost, kTimingLostNames);
  drops(out, ",\"exposure_lost\":", head.exposure_lost, kExposureLostNames);
  compute_arrays(out, head);
  if (const std::uint64_t calls = head.own_timed_calls.load(std::memory_order_relaxed)) {
    out << ",\"self_cost_sample\":{\"calls\":" << calls
        << ",\"ns\":" << head.own_ns.load(std::memory_order_relaxed) << '}';
  }
  out << ",\"self_cost_ns\":" << p.self_ns << ",\"base_time_ns\":" << view.head().base_real_ns
      << ",\"coverage\":{\"functions\":[";
  Comma comma;
  for (std::uint32_t n = 1; n < view.functions(); ++n) {
    const Function& f = head.function[n];
    if (f.library == 0) continue;
    std::uint64_t calls = 0;
    for (const Total& t : sums.rows) {
      if (t.key.function != n || n >= kMaxDataFunctions || t.key.mode == Mode::replayed) continue;
      calls += t.values.calls + t.values.failed + t.unfinished;
    }
    const bool known = f.library <= kMaxLibraries;
    out << comma.next() << "{\"name\":\"" << bounded_text(f.name) << "\",\"library\":";
    out.string(known ? bounded_text(head.library[f.library - 1]) : "")
        << ",\"calls\":" << calls << '}';
  }
  out << ']';
  missed_array(out, view);
  out << ",\"unseen\":";
  notes_array(out, head, false, {p.streams > kMaxStreams, sums.others, sums.unknown});
  out << ",\"tools\":";
  notes_array(out, head, true);
  out << '}';
  if (const auto status = head.exit_status.load(std::memory_order_relaxed); status != 0) {
    out << ",\"exit_status\":" << status - 1;
  }
  out << ",\"complete\":" << (complete == Complete::yes ? "true" : "false")
      << (complete == Complete::partial    ? ",\"partial\":true"
          : complete == Complete::snapshot ? ",\"snapshot\":true"
                                           : "")
      << "}}\n";
}

}  // namespace tprof
