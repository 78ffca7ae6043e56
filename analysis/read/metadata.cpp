#include "read/metadata.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>

#include "interpose/format/line_kinds.h"
#include "interpose/format/memory.h"
#include "interpose/format/schema.h"
#include "read/error.h"
#include "read/in_order.h"
#include "read/json.h"

namespace tprof::read {
namespace {

// More ranks than any machine has, and few enough for a list of all that are missing.
constexpr std::int64_t kMaxRanks = std::int64_t{1} << 20;
constexpr std::int64_t kMaxNumber = std::numeric_limits<std::int64_t>::max();

void check_schema(const object& args) {
  const std::string schema = text(args, "schema");
  if (schema == kSchema) return;
  if (schema.starts_with("tprof/")) {
    throw Malformed("written by tprof " + text_or_empty(args, "tprof_version") + " in schema " +
                    schema + "; this tprof reads " + kSchema +
                    ": use the tprof that belongs to the library");
  }
  throw Malformed("expected schema " + std::string(kSchema) + ", found '" + schema + "'");
}

Anchor anchor(const array& values) {
  std::array<std::int64_t, 3> v{};
  std::size_t n = 0;
  for (const element e : values) {
    if (n == v.size() || e.get(v[n]) != simdjson::SUCCESS)
      throw Malformed("expected a clock anchor");
    ++n;
  }
  if (n != v.size()) throw Malformed("expected a clock anchor of three integers");
  if (std::ranges::any_of(v, [](std::int64_t ns) { return ns < -kLatestNs || ns > kLatestNs; })) {
    throw Malformed("expected times of at most 2^62 ns in \"clock\"");
  }
  return {v[0], v[1], v[2]};
}

KeptVariables settings(const object& args, std::string_view key) {
  Variables all;
  object o;
  const auto found = find(args, key);
  if (!found || found->get(o) != simdjson::SUCCESS) return {};
  for (const auto field : o) {
    std::string_view value;
    all[std::string(field.key)] = field.value.get(value) == simdjson::SUCCESS
                                      ? std::string(value)
                                      : simdjson::minify(field.value);
  }
  return KeptVariables(all);
}

void identity(const object& args, Header& h) {
  if (find(args, "rank")) h.rank = integer_in(args, "rank", 0, kMaxRanks - 1);
  if (find(args, "world_size")) h.world_size = integer_in(args, "world_size", 1, kMaxRanks);
  if (h.rank && h.world_size && *h.rank >= *h.world_size) {
    throw Malformed("expected a rank below the world size, found rank " + std::to_string(*h.rank) +
                    " of " + std::to_string(*h.world_size));
  }
}

Header header(const object& args) {
  check_schema(args);
  Header h;
  std::string_view version;
  const auto told = find(args, "tprof_version");
  if (told && told->get(version) == simdjson::SUCCESS) h.version = version;
  h.run_id = text_or_empty(args, "run_id");
  identity(args, h);
  h.local_rank = optional_integer(args, "local_rank");
  h.restart = optional_integer_in(args, "restart", 0, kMaxNumber).value_or(0);
  h.host = text_or_empty(args, "host");
  h.boot_id = text_or_empty(args, "boot_id");
  h.pid_namespace = count_or_0(args, "pid_namespace");
  h.pid = integer(args, "pid");
  h.start_ns = integer_in(args, "start_ns", 0, kMaxNumber);
  if (find(args, "forked_from")) {
    const object from = object_of(args, "forked_from");
    h.forked_from = {integer(from, "pid"), integer_in(from, "start_ns", 0, kMaxNumber)};
  }
  if (find(args, "launcher")) {
    const object launcher = object_of(args, "launcher");
    h.launcher = {integer(launcher, "pid"), integer(launcher, "start_ticks")};
  }
  h.rendezvous = text_or_empty(args, "rendezvous");
  h.command = text_or_empty(args, "command");
  h.base_time_ns = integer_in(args, "base_time_ns", 0, kLatestNs);
  h.monotonic_ns = optional_integer_in(args, "monotonic_ns", 0, kLatestNs);
  for (const element e : array_of(args, "clock")) {
    array a;
    if (e.get(a) != simdjson::SUCCESS) throw Malformed("expected arrays in \"clock\"");
    h.clock.push_back(anchor(a));
  }
  h.nccl_version = optional_integer(args, "nccl_version");
  h.nccl_path = text_or_empty(args, "nccl_path");
  h.cudart_version = optional_integer(args, "cudart_version");
  h.cudart_path = text_or_empty(args, "cudart_path");
  if (find(args, "devices")) {
    for (const object& o : objects_of(args, "devices")) {
      h.devices.push_back(integer_or(o, "device", -1));
    }
  }
  h.config = settings(args, "config");
  h.env = settings(args, "env");
  h.ring = text_or_empty(args, "ring");
  if (find(args, "window")) h.window_of = text(object_of(args, "window"), "of");
  return h;
}

Comm comm(const object& args) {
  Comm c;
  c.comm = integer_in(args, "comm", 1, kMaxNumber);
  c.id = find(args, "id") ? text(args, "id") : std::string(Comm::kUnknown);
  if (find(args, "name")) c.name = text(args, "name");
  c.nranks = integer_in(args, "nranks", 1, kMaxRanks);
  c.rank = optional_integer_in(args, "rank", 0, c.nranks - 1).value_or(-1);
  if (c.known() && c.rank < 0) throw Malformed("expected an integer in \"rank\"");
  c.device = integer_or(args, "device", -1);
  c.parent = optional_integer(args, "parent");
  c.birth = text_or_empty(args, "birth");
  c.alias = text_or_empty(args, "alias");
  c.splits = count_or_0(args, "splits");
  c.shrinks = count_or_0(args, "shrinks");
  c.grows = count_or_0(args, "grows");
  c.ended = text_or_empty(args, "ended");
  return c;
}

Bucket bucket_of(std::string_view name) {
  const auto* found = std::ranges::find(kBuckets, name, &BucketInfo::name);
  if (found == std::end(kBuckets)) throw Malformed("unknown bucket '" + std::string(name) + "'");
  return static_cast<Bucket>(found - kBuckets);
}

Mode mode_of(std::string_view name) {
  const auto* found = std::ranges::find(kModeNames, name);
  if (found == std::end(kModeNames)) throw Malformed("unknown mode '" + std::string(name) + "'");
  return static_cast<Mode>(found - kModeNames);
}

ThreadKind thread_of(const object& o) {
  element thread;
  if (o["thread"].get(thread) != simdjson::SUCCESS) return ThreadKind::other;
  if (thread.is_null()) return ThreadKind::mixed;
  return text(o, "thread") == kAutogradThread ? ThreadKind::autograd : ThreadKind::other;
}

Row row(const object& fields) {
  const InOrder o(fields);
  Row r;
  r.bucket = bucket_of(text(o, "bucket"));
  r.name = text(o, "name");
  r.dtype = text(o, "dtype");
  r.comm = optional_integer(o, "comm");
  r.device = optional_integer(o, "device");
  r.host_memory = host_memory(fields);
  r.bytes_class = integer_in(o, "bytes_class", -1, 63);
  r.mode = mode_of(text(o, "mode"));
  r.thread = thread_of(fields);
  // These keys are there only if calls were timed.
  r.amounts = {.calls = count(o, "calls"),
               .count = count(o, "count"),
               .elements = count(o, "elements"),
               .bytes = count(o, "bytes"),
               .host_ns = count(o, "host_ns"),
               .host_ns_max = count(o, "host_ns_max"),
               .device_ns = count(o, "device_ns"),
               .device_ns_max = count_or_0(o, "device_ns_max"),
               .device_timed = count(o, "device_timed"),
               .device_bytes = count_or_0(o, "device_bytes"),
               .exposure_known = count_or_0(o, "exposure_known"),
               .exposure_known_ns = count_or_0(o, "exposure_known_ns"),
               .exposed_ns = count_or_0(o, "exposed_ns"),
               .exposed_ns_max = count_or_0(o, "exposed_ns_max"),
               .late = count_or_0(o, "late"),
               .failed = count(o, "failed"),
               .unfinished = count(o, "unfinished"),
               .replayed = r.mode == Mode::replayed ? count(o, "calls") : 0};
  return r;
}

MemoryUse memory_use(const object& o) {
  MemoryUse use{text(o, "kind"), optional_integer(o, "device"), count(o, "bytes"),
                count(o, "peak")};
  if (std::ranges::find(kMemoryKinds, use.kind) == std::end(kMemoryKinds)) {
    throw Malformed("unknown kind of memory '" + use.kind + "'");
  }
  return use;
}

// Reads a signature as it is written, in sixteen hexadecimal digits. Anything else is hashed, so
// that it can be told apart as well.
Signature signature(std::string_view text) {
  Signature v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v, 16);
  const bool whole = error == std::errc() && end == text.data() + 16 && text.size() == 16;
  return whole ? v : std::hash<std::string_view>{}(text);
}

Ledger ledger(const object& args) {
  Ledger l;
  l.epoch = integer_in(args, "epoch", 0, kMaxNumber);
  l.ends_epoch = text_or_empty(args, "reason") == "reset";
  double micros = 0;
  const auto ts = find(args, "ts");
  if (!ts || ts->get(micros) != simdjson::SUCCESS || std::abs(micros) * 1000 > kLatestNs) {
    throw Malformed("expected a time in \"ts\"");
  }
  l.ts_ns = std::llround(micros * 1000);  // says until when counts are known: no exact ns needed
  for (const object& o : objects_of(args, "rows")) l.rows.push_back(row(o));
  l.rows.shrink_to_fit();
  for (const object& o : objects_of(args, "comms")) {
    Collectives c{integer(o, "comm"), count(o, "collectives"), signature(text(o, "signature")), {}};
    for (const element mark : array_of(o, "marks")) {
      std::string_view m;
      if (mark.get(m) != simdjson::SUCCESS) throw Malformed("expected strings in \"marks\"");
      c.marks.push_back(signature(m));
    }
    l.collectives.push_back(std::move(c));
  }
  if (find(args, "life")) {
    for (const object& o : objects_of(args, "life")) {
      l.life.push_back({text(o, "name"), count(o, "calls"), count(o, "failed"),
                        count(o, "unfinished"), count(o, "host_ns"), count(o, "host_ns_max")});
    }
  }
  if (find(args, "memory")) {
    l.memory.emplace();
    for (const object& o : objects_of(args, "memory")) l.memory->push_back(memory_use(o));
  }
  return l;
}

std::vector<Noted> noted(const object& coverage, std::string_view key) {
  std::vector<Noted> all;
  if (!find(coverage, key)) return all;
  for (const object& o : objects_of(coverage, key)) {
    all.push_back({text(o, "kind"), text_or_empty(o, "path"), count_or_0(o, "calls")});
  }
  return all;
}

std::map<std::string, std::uint64_t> counts(const object& args, std::string_view key) {
  std::map<std::string, std::uint64_t> all;
  for (const auto field : object_of(args, key)) {
    std::uint64_t n = 0;
    if (field.value.get(n) != simdjson::SUCCESS) {
      throw Malformed("expected counts in \"" + std::string(key) + "\"");
    }
    all[std::string(field.key)] = n;
  }
  return all;
}

Compute compute(const object& args) {
  Compute c;
  const std::uint64_t window_ns = count(args, "window_ns");
  for (const object& o : objects_of(args, "devices")) {
    c.busy_ns = saturated_sum(c.busy_ns, count(o, "busy_ns"));
    c.window_ns = saturated_sum(c.window_ns, window_ns);
  }
  return c;
}

Footer footer(const object& args) {
  Footer f;
  f.dropped = counts(args, "dropped");
  if (find(args, "ranges_dropped")) f.ranges_dropped = counts(args, "ranges_dropped");
  if (find(args, "timing_lost")) f.timing_lost = counts(args, "timing_lost");
  if (find(args, "exposure_lost")) f.exposure_lost = counts(args, "exposure_lost");
  f.self_cost_ns = count(args, "self_cost_ns");
  if (find(args, "exit_status")) f.exit_status = count(args, "exit_status");
  if (find(args, "steps_dropped")) f.steps_dropped = count(args, "steps_dropped");
  if (find(args, "windows")) f.window_files = count(object_of(args, "windows"), "files");
  if (find(args, "compute")) f.compute = compute(object_of(args, "compute"));
  if (find(args, "base_time_ns")) f.base_time_ns = integer_in(args, "base_time_ns", 0, kLatestNs);
  const object coverage = object_of(args, "coverage");
  for (const object& o : objects_of(coverage, "functions")) {
    f.functions.push_back({text(o, "name"), text_or_empty(o, "library"), count(o, "calls")});
  }
  f.functions.shrink_to_fit();  // as many as ranks have these
  if (find(coverage, "missed")) {
    f.missed.emplace();
    for (const object& o : objects_of(coverage, "missed")) {
      (*f.missed)[text(o, "name")] += count(o, "calls");
    }
  }
  f.unseen = noted(coverage, "unseen");
  f.tools = noted(coverage, "tools");
  f.complete = flag(args, "complete");
  f.partial = flag(args, "partial");
  f.snapshot = flag(args, "snapshot");
  return f;
}

}  // namespace

void MetadataParser::line(const Line& line) {
  try {
    dispatch(line);
  } catch (const Malformed& e) {
    throw BadInput(file_, line.offset, e.what());
  }
}

void MetadataParser::dispatch(const Line& line) {
  element whole;
  object top;
  if (parser_.parse(line.text.data(), line.text.size(), false).get(whole) != simdjson::SUCCESS ||
      whole.get(top) != simdjson::SUCCESS) {
    throw Malformed("expected one JSON object on this line");
  }
  refuse_repeated_keys(whole);
  const std::string name = text(top, "name");
  if (!name.starts_with("tprof_")) return;  // an event whose name is written with escapes
  const std::optional<LineKind> kind = line_kind(name);
  if (kind == LineKind::merged) {
    check_schema(object_of(top, "args"));
    if (!processes_.empty()) throw Malformed("expected tprof_merged before any tprof_header");
    merged_ = true;
    return;
  }
  if (kind == LineKind::header) {
    if (!merged_ && !processes_.empty()) {
      throw Malformed(
          "a second tprof_header in a file that is no merged trace: were files put together? Give "
          "them one by one");
    }
    Process& p = processes_.emplace_back();
    p.file = file_.string();
    p.offset = line.offset;
    p.line_pid = integer(top, "pid");
    p.header = header(object_of(top, "args"));
    return;
  }
  if (processes_.empty()) throw Malformed("expected tprof_header before " + name);
  Process& p = processes_.back();
  const std::int64_t pid = integer(top, "pid");
  if (p.footer) throw Malformed("expected no " + name + " behind the process's tprof_footer");
  if (kind == LineKind::comm) {
    Comm c = comm(object_of(top, "args"));
    p.comms[c.comm] = std::move(c);
  } else if (kind == LineKind::ledger) {
    Ledger l = ledger(object_of(top, "args"));
    if (p.ledger && l.epoch < p.ledger->epoch) {
      throw Malformed("expected an epoch of at least " + std::to_string(p.ledger->epoch) +
                      ", found " + std::to_string(l.epoch));
    }
    if (l.ends_epoch) p.epoch_ends.push_back(l);
    ++p.ledgers;
    p.ledger = std::move(l);
  } else if (kind == LineKind::footer) {
    p.footer = footer(object_of(top, "args"));
    if (p.windows_missing != 0) p.footer->dropped[std::string(kNotHere)] += 0;  // number unknown
    if (!merged_ && p.footer->base_time_ns.value_or(p.header.base_time_ns) != p.header.base_time_ns)
      throw Malformed(
          "expected the footer of the process whose header begins this file, found another "
          "process's: were files put together? Give them one by one");
  } else if (kind == LineKind::clock) {
    p.header.clock.push_back(anchor(array_of(object_of(top, "args"), "clock")));
  } else if (kind == LineKind::window && merged_) {
    if (!find(object_of(top, "args"), "file")) return;
    ++p.windows_missing;  // its lines were not merged
  } else if (kind == LineKind::identity) {
    const object args = object_of(top, "args");
    identity(args, p.header);
    p.header.identified = true;
  } else {
    return;  // groups, graphs and sites belong to the events
  }
  if (merged_ && pid != p.line_pid) {
    throw Malformed("belongs to pid " + std::to_string(pid) + " but follows the header of pid " +
                    std::to_string(p.line_pid));
  }
  p.line_pid = pid;
}

}  // namespace tprof::read
