#include "read/metadata.h"

#include <array>
#include <charconv>
#include <functional>

#include "interpose/format/line_kinds.h"
#include "interpose/format/memory.h"
#include "interpose/format/schema.h"
#include "read/error.h"

namespace tprof::read {
namespace {

// More ranks than any job has, and few enough to list all missing ones.
constexpr std::int64_t kMaxRanks = std::int64_t{1} << 20;
constexpr Bounds kOfTime{0, kLatestNs};

// Reads a signature of sixteen hexadecimal digits. Anything else is hashed, so that different ones
// stay different.
Signature signature(std::string_view text) {
  Signature v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v, 16);
  const bool whole = error == std::errc() && end == text.data() + 16 && text.size() == 16;
  return whole ? v : std::hash<std::string_view>{}(text);
}

Anchor anchor(const array& values) {
  std::array<std::int64_t, 3> v{};
  std::size_t n = 0;
  for (const element e : values) {
    if (n == v.size() || e.get(v[n]) != simdjson::SUCCESS || v[n] < -kLatestNs || v[n] > kLatestNs)
      throw Malformed("expected clock anchors of three integers, times of at most 2^62 ns");
    ++n;
  }
  if (n != v.size()) throw Malformed("expected a clock anchor of three integers");
  return {v[0], v[1], v[2]};
}

KeptVariables settings(const Fields& args, std::string_view key) {
  Variables all;
  object o;
  const auto found = args.find(key);
  if (!found || found->get(o) != simdjson::SUCCESS) return {};
  for (const auto field : o) {
    std::string_view value;
    all[std::string(field.key)] = field.value.get(value) == simdjson::SUCCESS
                                      ? std::string(value)
                                      : simdjson::minify(field.value);
  }
  return KeptVariables(all);
}

void identity(const Fields& args, Header& h) {
  args.may_in({0, kMaxRanks - 1}, "rank", h.rank);
  args.may_in({1, kMaxRanks}, "world_size", h.world_size);
  if (h.rank && h.world_size && *h.rank >= *h.world_size) {
    throw Malformed("expected a rank below the world size, found rank " + std::to_string(*h.rank) +
                    " of " + std::to_string(*h.world_size));
  }
}

struct UnknownSchema : Malformed {
  using Malformed::Malformed;
};

void check_schema(const Fields& args) {
  const auto schema = args.get<std::string>("schema");
  if (schema == kSchema) return;
  if (schema.starts_with("tprof/")) {
    throw UnknownSchema("written by tprof " + args.get_or<std::string>("tprof_version") +
                        " in schema " + schema + "; this tprof reads " + kSchema +
                        ": use the tprof that belongs to the library");
  }
  throw UnknownSchema("expected schema " + std::string(kSchema) + ", found '" + schema + "'");
}

}  // namespace

void fill_origin(const Fields& args, Header& h) {
  check_schema(args);
  args.may("run_id", h.run_id, "host", h.host, "boot_id", h.boot_id);
  args.need_in(kOfTime, "base_time_ns", h.base_time_ns);
  args.may_in(kOfTime, "monotonic_ns", h.monotonic_ns);
}

static void fill(const Fields& o, ProcessId& p) {
  o.need("pid", p.pid);
  o.need_in(kNotNegative, "start_ns", p.start_ns);
}

static void fill(const Fields& o, Launcher& l) {
  o.need("pid", l.pid, "start_ticks", l.start_ticks);
}

static void fill(const Fields& args, Header& h) {
  fill_origin(args, h);
  std::string_view version;
  const auto told = args.find("tprof_version");
  if (told && told->get(version) == simdjson::SUCCESS) h.version = version;
  identity(args, h);
  args.may("local_rank", h.local_rank);
  args.may_in(kNotNegative, "restart", h.restart);
  args.may("pid_namespace", h.pid_namespace);
  args.need("pid", h.pid);
  args.need_in(kNotNegative, "start_ns", h.start_ns);
  args.may("forked_from", h.forked_from, "launcher", h.launcher, "rendezvous", h.rendezvous,
           "command", h.command);
  for (const element e : args.get<array>("clock")) {
    array values;
    if (e.get(values) != simdjson::SUCCESS) throw Malformed("expected arrays in \"clock\"");
    h.clock.push_back(anchor(values));
  }
  args.may("nccl_version", h.nccl_version, "nccl_path", h.nccl_path, "cudart_version",
           h.cudart_version, "cudart_path", h.cudart_path);
  if (args.has("devices")) {
    args.each("devices",
              [&](const Fields& o) { h.devices.push_back(o.get_or<std::int64_t>("device", -1)); });
  }
  h.config = settings(args, "config");
  h.env = settings(args, "env");
  args.may("ring", h.ring);
  if (args.has("window")) args.get<Fields>("window").need("of", h.window_of);
}

static void fill(const Fields& args, Comm& c) {
  c.id = Comm::kUnknown;
  c.rank = c.device = -1;
  args.need_in({.least = 1}, "comm", c.comm);
  args.may("id", c.id, "name", c.name);
  args.need_in({1, kMaxRanks}, "nranks", c.nranks);
  if (c.known()) {
    args.need_in({0, c.nranks - 1}, "rank", c.rank);
  } else {
    args.may_in({0, c.nranks - 1}, "rank", c.rank);
  }
  args.may("device", c.device, "parent", c.parent, "birth", c.birth, "alias", c.alias, "splits",
           c.splits, "shrinks", c.shrinks, "grows", c.grows, "ended", c.ended);
}

void fill(const Fields& o, RowKey& key) {
  o.need_word("bucket", key.bucket, kBuckets, &BucketInfo::name);
  o.need("name", key.name, "dtype", key.dtype);
  o.may("comm", key.comm, "device", key.device);
  o.may_word("host_memory", key.host_memory, kHostMemoryNames);
  o.need_in({-1, 63}, "bytes_class", key.bytes_class);
}

static void fill(const Fields& o, Row& r) {
  fill(o, static_cast<RowKey&>(r));
  o.need_word("mode", r.mode, kModeNames);
  if (o.is_null("thread")) r.thread = ThreadKind::mixed;
  if (o.get_or<std::string_view>("thread") == kAutogradThread) r.thread = ThreadKind::autograd;
  for (const Figure& f : kFigures) {
    if (f.key.empty()) continue;
    f.may_lack ? o.may(f.key, r.amounts.*f.of) : o.need(f.key, r.amounts.*f.of);
  }
  if (r.mode == Mode::replayed) r.amounts.replayed = r.amounts.calls;
}

static void fill(const Fields& o, Collectives& c) {
  o.need("comm", c.comm, "collectives", c.count);
  c.signature = signature(o.get<std::string_view>("signature"));
  for (const element mark : o.get<array>("marks")) {
    std::string_view m;
    if (mark.get(m) != simdjson::SUCCESS) throw Malformed("expected strings in \"marks\"");
    c.marks.push_back(signature(m));
  }
}

static void fill(const Fields& o, LifeCalls& c) {
  o.need("name", c.name, "calls", c.calls, "failed", c.failed, "unfinished", c.unfinished,
         "host_ns", c.host_ns, "host_ns_max", c.host_ns_max);
}

static void fill(const Fields& o, MemoryUse& use) {
  std::size_t known = 0;
  o.need_word("kind", known, kMemoryKinds);
  use.kind = kMemoryKinds[known];
  o.may("device", use.device);
  o.need("bytes", use.bytes, "peak", use.peak);
}

static void fill(const Fields& args, Ledger& l) {
  args.need_in(kNotNegative, "epoch", l.epoch);
  l.ends_epoch = args.get_or<std::string_view>("reason") == "reset";
  args.need_time("ts", l.ts_ns);
  args.each("rows", [&](const Fields& o) {
    Row row;
    fill(o, row);
    l.rows.push_back(row);
  });
  l.rows.shrink_to_fit();
  args.need("comms", l.collectives);
  args.may("life", l.life, "memory", l.memory);
}

static void fill(const Fields& o, Noted& n) {
  o.need("kind", n.kind);
  o.may("path", n.path, "calls", n.calls);
}

static void fill(const Fields& o, BoundFunction& f) {
  o.need("name", f.name);
  o.may("library", f.library);
  o.need("calls", f.calls);
}

static void fill(const Fields& args, Compute& c) {
  const auto window_ns = args.get<std::uint64_t>("window_ns");
  args.each("devices", [&](const Fields& o) {
    c.busy_ns = saturated_sum(c.busy_ns, o.get<std::uint64_t>("busy_ns"));
    c.window_ns = saturated_sum(c.window_ns, window_ns);
  });
}

static void fill(const Fields& args, Footer& f) {
  args.need("dropped", f.dropped);
  args.may("ranges_dropped", f.ranges_dropped, "timing_lost", f.timing_lost, "exposure_lost",
           f.exposure_lost);
  args.need("self_cost_ns", f.self_cost_ns);
  if (args.has("self_cost_sample")) {
    args.get<Fields>("self_cost_sample").need("calls", f.own_timed_calls, "ns", f.own_ns);
  }
  args.may("exit_status", f.exit_status, "steps_dropped", f.steps_dropped);
  if (args.has("windows")) args.get<Fields>("windows").need("files", f.window_files);
  args.may("compute", f.compute);
  args.may_in(kOfTime, "base_time_ns", f.base_time_ns);
  const auto coverage = args.get<Fields>("coverage");
  coverage.need("functions", f.functions);
  f.functions.shrink_to_fit();  // every rank has these
  if (coverage.has("missed")) {
    f.missed.emplace();
    coverage.each("missed", [&](const Fields& o) {
      (*f.missed)[o.get<std::string>("name")] += o.get<std::uint64_t>("calls");
    });
  }
  coverage.may("unseen", f.unseen, "tools", f.tools);
  args.may("complete", f.complete, "partial", f.partial, "snapshot", f.snapshot);
}

void MetadataParser::line(const Line& line) {
  if (!is_metadata(line.text)) {
    if (processes_.empty() || begins(line.text, "{\"name\":\"") ||
        begins(line.text, "{\"cat\":\"")) {
      return;
    }
    throw BadInput(file_, line.offset, "expected a line that begins with {\"name\": or {\"cat\":");
  }
  try {
    dispatch(line);
  } catch (const UnknownSchema& e) {
    throw OtherSchema(file_, line.offset, e.what());
  } catch (const Malformed& e) {
    throw BadInput(file_, line.offset, e.what());
  }
}

void MetadataParser::dispatch(const Line& line) {
  const Fields top = object_in(parser_, line.text, true);
  refuse_repeated_keys(top.all());
  const auto name = top.get<std::string>("name");
  if (!name.starts_with("tprof_")) return;  // an event whose name has escapes
  const std::optional<LineKind> kind = line_kind(name);
  if (kind == LineKind::merged) {
    const auto args = top.get<Fields>("args");
    check_schema(args);
    args.may("only", only_);
    if (!processes_.empty()) throw Malformed("expected tprof_merged before any tprof_header");
    merged_ = true;
    return;
  }
  if (kind == LineKind::header) {
    if (!merged_ && !processes_.empty()) {
      throw Malformed(
          "a second tprof_header in a file that is no merged trace: were files concatenated? Give "
          "them one by one");
    }
    Process& p = processes_.emplace_back();
    p.file = file_.string();
    p.offset = line.offset;
    top.need("pid", p.line_pid, "args", p.header);
    p.only = only_;
    return;
  }
  if (processes_.empty()) throw Malformed("expected tprof_header before " + name);
  Process& p = processes_.back();
  const auto pid = top.get<std::int64_t>("pid");
  if (p.footer) throw Malformed("expected no " + name + " after the process's tprof_footer");
  if (kind == LineKind::comm) {
    auto c = top.get<Comm>("args");
    p.comms[c.comm] = std::move(c);
  } else if (kind == LineKind::ledger) {
    auto l = top.get<Ledger>("args");
    if (p.ledger && l.epoch < p.ledger->epoch) {
      throw Malformed("expected an epoch of at least " + std::to_string(p.ledger->epoch) +
                      ", found " + std::to_string(l.epoch));
    }
    if (l.ends_epoch) p.epoch_ends.push_back(l);
    ++p.ledgers;
    p.ledger = std::move(l);
  } else if (kind == LineKind::footer) {
    top.need("args", p.footer);
    if (p.windows_missing != 0) p.footer->dropped[std::string(kNotHere)] += 0;  // unknown number
    if (!merged_ && p.footer->base_time_ns.value_or(p.header.base_time_ns) != p.header.base_time_ns)
      throw Malformed(
          "expected the footer of the process whose header begins this file, found another "
          "process's: were files concatenated? Give them one by one");
  } else if (kind == LineKind::clock) {
    p.header.clock.push_back(anchor(top.get<Fields>("args").get<array>("clock")));
  } else if (kind == LineKind::window && merged_) {
    if (!top.get<Fields>("args").has("file")) return;
    ++p.windows_missing;  // the window's lines were not merged
  } else if (kind == LineKind::identity) {
    identity(top.get<Fields>("args"), p.header);
    p.header.identified = true;
  } else {
    return;  // groups, graphs and sites matter to events only
  }
  if (merged_ && pid != p.line_pid) {
    throw Malformed("belongs to pid " + std::to_string(pid) + " but follows the header of pid " +
                    std::to_string(p.line_pid));
  }
  p.line_pid = pid;
}

}  // namespace tprof::read
