// The lines that sum up: tprof_graph, tprof_ledger, tprof_footer.
#pragma once

#include <cstdint>

#include "interpose/format/coverage.h"
#include "interpose/lines/lines.h"
#include "interpose/lines/totals.h"

namespace tprof {

// The exact totals of a process at one moment, with the room that making them takes.
struct Sums {
  Pages<Total> all;   // every row, replays included, per graph
  Pages<Total> rows;  // calls only, added up over graphs: the ledger's rows
};

inline void collect(const View& view, Sums& sums, bool count_open_calls) {
  collect_totals(view, sums.all);
  for (Total& t : sums.all) {
    if (!count_open_calls) t.unfinished = 0;
  }
  if (count_open_calls) {
    each_open_call(view, [&](const Record& r, const ThreadArea&) {
      if (view.function(r.function) != nullptr) sums.all.push_back({key_of(view, r), {}, 1});
    });
  }
  sums.rows.clear();
  for (Total t : sums.all) {
    if (t.key.function >= kMetaThread || t.key.mode == Mode::in_graph) continue;
    if (t.values.calls + t.values.failed + t.unfinished == 0) continue;
    t.key.graph = 0;
    sums.rows.push_back(t);
  }
  merge_totals(sums.rows);
}

inline std::string_view function_name(const View& view, std::uint8_t number) {
  const Function* f = view.function(number);
  return f == nullptr ? std::string_view("?")
                      : std::string_view(f->name, strnlen(f->name, sizeof f->name));
}

// What a row counts, without its values.
inline void row_key(Text& out, const View& view, const LedgerKey& key) {
  out << "{\"bucket\":\"" << bucket_name(key.bucket) << "\",\"name\":\""
      << function_name(view, key.function) << "\",\"dtype\":\""
      << dtype_name(key.dtype, view.head().copy_element_size) << "\",\"comm\":";
  const bool copy = is_copy(key.bucket);
  out.number_or_null(key.comm != 0 && !copy, key.comm);
  if (copy) {
    out << ",\"device\":";
    out.number_or_null(key.comm != 0, key.comm - 1);
  }
  out << ",\"bytes_class\":" << std::int32_t{key.bytes_class};
}

inline void row_amounts(Text& out, const View& view, const Total& t) {
  const Amount a =
      amount(view, t.key.function, t.key.bucket, t.key.dtype, t.key.comm, t.values.count);
  out << ",\"calls\":" << t.values.calls << ",\"count\":" << t.values.count
      << ",\"elements\":" << a.elements << ",\"bytes\":" << a.bytes;
}

// What a launch of graph `index` executes; an executable's line names its source only.
inline void graph_line(Text& out, const View& view, Sums& sums, std::uint32_t index) {
  const Graph* g = view.graph(index);
  if (g == nullptr) return;
  // Of this graph only: there may be thousands, and a line for each.
  sums.all.clear();
  if (g->kind == GraphKind::content) {
    view.each_row([&](const LedgerRow& row, const ThreadArea& thread) {
      const LedgerKey key = key_of(row);
      if (key.mode != Mode::in_graph || key.graph != index) return;
      const LedgerValues values = read_row(row, thread.committed);
      if (values.calls != 0) sums.all.push_back({key, values, 0});
    });
    merge_totals(sums.all);
  }
  open_line(out, view, "tprof_graph", 'M', 0) << ",\"args\":{\"graph\":" << index << ",\"ts\":";
  timestamp(out, view, g->made_ns) << ",\"source\":";
  out.number_or_null(g->kind == GraphKind::executable && g->source != 0, g->source)
      << ",\"calls\":[";
  bool first = true;
  for (const Total& t : sums.all) {
    if (!first) out << ',';
    first = false;
    row_key(out, view, t.key);
    row_amounts(out, view, t);
    out << '}';
  }
  out << "]}},\n";
}

// The signatures of the communicators, asked for in order: a communicator's rows stand among those
// of their bin, and those of each bin are sorted by communicator.
class Signatures {
 public:
  static constexpr int kBins = 65;
  struct Bins {
    std::uint64_t calls[kBins] = {};
    std::uint64_t sum[kBins] = {};
  };

  explicit Signatures(const Sums& sums) {
    for (const Total& t : sums.all) {
      const auto bin = static_cast<std::uint8_t>(t.key.bytes_class);
      if (t.key.function != kMetaSignature || bin >= kBins) continue;
      if (next_[bin] == nullptr) next_[bin] = &t;
      end_[bin] = &t + 1;
    }
  }

  Bins of(std::uint32_t comm) {
    Bins bins;
    for (int bin = 0; bin < kBins; ++bin) {
      const Total*& t = next_[bin];
      for (; t != end_[bin] && t->key.comm <= comm; ++t) {
        if (t->key.comm != comm) continue;
        bins.calls[bin] += t->values.calls;
        bins.sum[bin] += t->values.count;
      }
    }
    return bins;
  }

 private:
  const Total* next_[kBins] = {};
  const Total* end_[kBins] = {};
};

// {"comm":1,"collectives":5,"signature":"…","marks":["…",…]}: marks[k] is the signature after 2^k.
inline void comm_signature(Text& out, Signatures& signatures, std::uint32_t comm) {
  std::uint64_t collectives = 0;
  std::uint64_t signature = 0;
  std::uint64_t marks[65];
  int known = 0;
  const auto [calls, sum] = signatures.of(comm);
  for (int bin = 0; bin <= 64; ++bin) {
    collectives += calls[bin];
    signature += sum[bin];
    if (bin < 64 && collectives == std::uint64_t{1} << bin) marks[known++] = signature;
  }
  out << "{\"comm\":" << comm << ",\"collectives\":" << collectives << ",\"signature\":\"";
  out.hex16(signature) << "\",\"marks\":[";
  for (int i = 0; i < known; ++i) {
    if (i != 0) out << ',';
    out << '"';
    out.hex16(marks[i]) << '"';
  }
  out << "]}";
}

inline void ledger_line(Text& out, const View& view, Sums& sums, std::uint64_t now_ns,
                        std::string_view reason, bool count_open_calls) {
  collect(view, sums, count_open_calls);
  open_line(out, view, "tprof_ledger", 'M', 0)
      << ",\"args\":{\"epoch\":0,\"reason\":\"" << reason << "\",\"ts\":";
  timestamp(out, view, now_ns) << ",\"rows\":[";
  bool first = true;
  for (const Total& t : sums.rows) {
    if (!first) out << ',';
    first = false;
    row_key(out, view, t.key);
    out << ",\"mode\":\"" << mode_name(t.key.mode) << '"';
    row_amounts(out, view, t);
    out << ",\"host_ns\":" << t.values.host_ns << ",\"host_ns_max\":" << t.values.host_ns_max
        << ",\"device_ns\":0,\"device_timed\":0,\"failed\":" << t.values.failed
        << ",\"unfinished\":" << t.unfinished << '}';
  }
  out << "],\"comms\":[";
  const std::uint32_t comms = View::entries(view.head().comms);
  Signatures signatures(sums);
  for (std::uint32_t i = 1; i <= comms && is_own_comm(i); ++i) {
    if (i != 1) out << ',';
    comm_signature(out, signatures, i);
  }
  out << "]}},\n";
}

// ,"ranges_dropped":{"quota":2}, or nothing.
inline void ranges_dropped(Text& out, const Sums& sums, const Progress& progress) {
  std::uint64_t dropped[kRangeDroppedCount];
  for (std::size_t i = 0; i < kRangeDroppedCount; ++i) dropped[i] = progress.range_dropped[i];
  for (const Total& t : sums.all) {
    const auto reason = static_cast<std::uint8_t>(t.key.bytes_class);
    if (t.key.function == kMetaRangeDropped && reason < kRangeDroppedCount) {
      dropped[reason] += t.values.calls;
    }
  }
  bool any = false;
  for (std::size_t i = 0; i < kRangeDroppedCount; ++i) {
    if (dropped[i] == 0) continue;
    out << (any ? ",\"" : ",\"ranges_dropped\":{\"") << kRangeDroppedNames[i]
        << "\":" << dropped[i];
    any = true;
  }
  if (any) out << '}';
}

inline std::uint64_t ring_drops(const Sums& sums) {
  std::uint64_t n = 0;
  for (const Total& t : sums.all) n += t.key.function == kMetaDropped ? t.values.calls : 0;
  return n;
}

// Who ended the file: the process itself; a reader that took over from it; or a reader that found
// a part of the counts gone.
enum class Complete : std::uint8_t { yes, no, partial };

// Calls of NCCL that it told of by its NVTX ranges and that no wrapper saw. Nothing where its
// ranges did not arrive: then nobody knows.
inline void missed_array(Text& out, const View& view) {
  const Head& head = view.head();
  if (head.nccl_ranges.load(std::memory_order_relaxed) == 0) return;
  out << ",\"missed\":[";
  bool first = true;
  for (std::uint32_t n = 1; n < view.functions(); ++n) {
    const std::uint64_t calls = head.function[n].missed.load(std::memory_order_relaxed);
    if (calls == 0) continue;
    out << (first ? "{\"name\":\"" : ",{\"name\":\"") << bounded_text(head.function[n].name)
        << "\",\"calls\":" << calls << '}';
    first = false;
  }
  out << ']';
}

// The last object of the file: no comma behind it. Wants `sums` as the closing ledger left them.
inline void footer_line(Text& out, const View& view, const Sums& sums, const Progress& progress,
                        Complete complete) {
  const Head& head = view.head();
  std::uint64_t dropped[kDroppedCount];
  for (std::size_t i = 0; i < kDroppedCount; ++i) dropped[i] = progress.dropped[i];
  dropped[static_cast<std::size_t>(Dropped::ring)] = ring_drops(sums);
  open_line(out, view, "tprof_footer", 'M', 0) << ",\"args\":{\"dropped\":{";
  bool first = true;
  for (std::size_t i = 0; i < kDroppedCount; ++i) {
    if (dropped[i] == 0) continue;
    out << (first ? "\"" : ",\"") << kDroppedNames[i] << "\":" << dropped[i];
    first = false;
  }
  out << '}';
  ranges_dropped(out, sums, progress);
  out << ",\"self_cost_ns\":" << progress.self_ns
      << ",\"base_time_ns\":" << view.head().base_real_ns << ",\"coverage\":{\"functions\":[";
  first = true;
  for (std::uint32_t n = 1; n < view.functions(); ++n) {
    const Function& f = head.function[n];
    if (f.library == 0) continue;
    std::uint64_t calls = 0;
    for (const Total& t : sums.rows) {
      if (t.key.function != n || n >= kMaxDataFunctions || t.key.mode == Mode::replayed) continue;
      calls += t.values.calls + t.values.failed + t.unfinished;
    }
    const char* path = f.library <= kMaxLibraries ? head.library[f.library - 1] : "";
    out << (first ? "" : ",") << "{\"name\":\"" << bounded_text(f.name) << "\",\"library\":";
    first = false;
    out.string({path, strnlen(path, sizeof head.library[0])}) << ",\"calls\":" << calls << '}';
  }
  out << ']';
  missed_array(out, view);
  out << ",\"unseen\":";
  notes_array(out, head, false, progress.streams > kMaxStreams);
  out << ",\"tools\":";
  notes_array(out, head, true);
  out << "},\"complete\":" << (complete == Complete::yes ? "true" : "false")
      << (complete == Complete::partial ? ",\"partial\":true" : "") << "}}\n";
}

}  // namespace tprof
