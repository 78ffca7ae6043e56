#include "export/other_trace.h"

#include <fmt/format.h>
#include <glob.h>
#include <simdjson.h>
#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <iterator>
#include <regex>
#include <set>
#include <tuple>

#include "check/ends.h"
#include "check/names.h"
#include "read/error.h"
#include "read/folder.h"
#include "read/json.h"
#include "read/json_pieces.h"
#include "read/lines.h"
#include "text/text.h"

namespace tprof::trace_export {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
// A ts since 1970 is above this (September 2001), a ts since a machine's or job's start is below.
constexpr std::int64_t kEpochTimes = 1'000'000'000'000'000'000;

// Returns the token's text for use within our quotes. A token that is no string is cut at the first
// quote.
std::string_view unquoted(std::string_view token) {
  const bool quoted = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  if (quoted) return token.substr(1, token.size() - 2);
  return token.substr(0, token.find('"'));
}

std::optional<std::int64_t> optional_integer(simdjson::simdjson_result<simdjson::dom::element> e) {
  std::int64_t value = 0;
  return e.get(value) == simdjson::SUCCESS ? std::optional(value) : std::nullopt;
}

// A collective that PyTorch's profiler marks: by `record_param_comms`, or by the range `nccl:NAME`
// of versions whose records have no name.
struct Mark {
  std::string thread;
  align::Stay stay;
  bool range = false;
};

// PyTorch's names, without underscores, of operations that are one call of the library: no
// coalesced ones, which are several calls, and no sends and receives.
struct Known {
  std::string_view name;
  Bucket kind;
  std::string_view elements;  // the argument that has them; empty: none
};
constexpr std::string_view kIn = "In msg nelems";
constexpr std::string_view kOut = "Out msg nelems";
constexpr Known kKnown[] = {
    {"allgather", Bucket::ALLGATHER, kOut},     {"allgatherbase", Bucket::ALLGATHER, kOut},
    {"reducescatter", Bucket::RESHARDING, kIn}, {"reducescatterbase", Bucket::RESHARDING, kIn},
    {"allreduce", Bucket::ALLREDUCE, kIn},      {"allreducebarrier", Bucket::ALLREDUCE, ""},
    {"barrier", Bucket::ALLREDUCE, ""},         {"broadcast", Bucket::BROADCAST, kIn},
    {"broadcastoop", Bucket::BROADCAST, kIn},   {"reduce", Bucket::REDUCE, kIn},
    {"reduceoop", Bucket::REDUCE, kIn},
};

const Known* known(std::string_view name) {
  std::string plain(name);
  std::erase(plain, '_');
  const auto* found = std::ranges::find(kKnown, plain, &Known::name);
  return found == std::end(kKnown) ? nullptr : found;
}

std::uint64_t elements_of(const read::object& args, const Known& what) {
  std::uint64_t elements = 0;
  std::string_view dtype;
  if (what.elements.empty() || args.at_key(what.elements).get(elements) != simdjson::SUCCESS) {
    return 0;
  }
  // Complex numbers are passed as two elements each, so counts differ.
  const bool has_dtype = args.at_key("dtype").get(dtype) == simdjson::SUCCESS;
  return has_dtype && dtype.starts_with("Complex") ? 0 : elements;
}

// Returns the mark in an event's `name` and `args`; nullopt: none.
std::optional<Mark> mark_of(std::string_view name, std::string_view args) {
  constexpr std::string_view kRange = "\"nccl:";
  simdjson::dom::parser parser;
  read::object o;
  std::string_view said;
  const bool range = name.starts_with(kRange);
  if (range) {
    said = name.substr(kRange.size(), name.find('"', kRange.size()) - kRange.size());
  } else if (name != "\"record_param_comms\"" ||
             parser.parse(args.data(), args.size()).get(o) != simdjson::SUCCESS ||
             o.at_key("Collective name").get(said) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  const Known* what = known(said);
  if (what == nullptr) return std::nullopt;
  return Mark{{}, {what->kind, range ? 0 : elements_of(o, *what)}, range};
}

// Returns all marks sorted by begin: records, or ranges if there are no records. If one encloses
// another (a barrier and its all-reduce), returns only the inner one.
std::vector<align::Stay> innermost(std::vector<Mark> marks) {
  if (!std::ranges::all_of(marks, &Mark::range))
    std::erase_if(marks, [](const Mark& m) { return m.range; });
  // If two begin together, the inner one comes second.
  std::ranges::sort(marks, {}, [](const Mark& m) {
    return std::tuple(m.thread, m.stay.begin_ns, -m.stay.end_ns);
  });
  std::vector<align::Stay> all;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const bool encloses = i + 1 < marks.size() && marks[i + 1].thread == marks[i].thread &&
                          marks[i + 1].stay.end_ns <= marks[i].stay.end_ns;
    if (!encloses) all.push_back(marks[i].stay);
  }
  std::ranges::sort(all, {}, &align::Stay::begin_ns);
  return all;
}

namespace fs = std::filesystem;

// The number after the last "rank" of a file's name.
std::optional<std::int64_t> rank_in_name(const fs::path& file) {
  static const std::regex kRank(".*rank[-_.=]?([0-9]{1,18}).*");
  std::smatch found;
  const std::string name = file.filename().string();
  if (!std::regex_match(name, found, kRank)) return std::nullopt;
  return std::stoll(found[1]);
}

std::vector<fs::path> files_of(const std::string& pattern) {
  if (fs::is_directory(pattern)) {
    std::vector<fs::path> files;
    for (const read::TraceFile& file : read::files_in(pattern)) files.push_back(file.path);
    return files;
  }
  if (fs::exists(pattern)) return {pattern};
  glob_t found{};
  std::vector<fs::path> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return files;
}

const read::Process* process_of(std::int64_t rank, const std::vector<const read::Process*>& all) {
  const auto process =
      std::ranges::find_if(all, [&](const read::Process* p) { return p->header.rank == rank; });
  return process == all.end() ? nullptr : *process;
}

const read::Process& owner_of(const fs::path& file, std::optional<std::int64_t> rank,
                              const std::vector<const read::Process*>& chosen) {
  if (!rank && chosen.size() == 1) return *chosen[0];
  if (!rank) {
    throw read::BadInput(file, "its rank is unknown: give it as --with RANK=FILE");
  }
  if (const read::Process* process = process_of(*rank, chosen)) return *process;
  throw read::BadInput(file, fmt::format("it is from rank {}, which is not merged: that is {}",
                                         *rank, check::ranks_of(chosen).str()));
}

// A trace of another run would be hours or years away from the calls.
void require_same_time(const fs::path& file, const OtherTrace& trace,
                       const std::vector<const read::Process*>& job) {
  const auto [first, last] = check::span_of(job);
  // When other tools may have seen the job.
  auto [from, until] = std::pair(first, last);
  for (const read::Process* p : job) {
    from = std::min(from, p->header.start_ns);
    if (p->end == read::End::running || !p->ledger) until = INT64_MAX;
  }
  if (trace.end_ns() >= from && trace.begin_ns() <= until) return;
  throw read::BadInput(file, fmt::format("its time is not this job's: {} to {}, not {} to {}",
                                         text::utc(trace.begin_ns()), text::utc(trace.end_ns()),
                                         text::utc(first), text::utc(last)));
}

// Refines the clocks of other traces by the collectives that are in both.
using Stays = std::vector<align::Stay>;

// The collectives of a process with lines, by CLOCK_REALTIME.
struct OurCollectives {
  explicit OurCollectives(const read::Process& p) : rank(p) {}

  void call(const read::Event& e) {
    if (!e.collective() || e.failed) return;
    const bool of_all = e.bucket == Bucket::ALLGATHER || e.bucket == Bucket::RESHARDING;
    const read::Comm* comm = read::comm_of(rank, e.comm);
    const std::int64_t times = comm == nullptr ? 0 : of_all ? comm->nranks : 1;
    const std::int64_t begin_ns = rank.header.base_time_ns + e.ts_ns;
    all.push_back(
        {{e.bucket, e.count * static_cast<std::uint64_t>(times), begin_ns, begin_ns + e.dur_ns},
         *e.comm,
         e.seq});
  }
  void end() {
    std::ranges::sort(all, {}, [](const Call& call) { return call.stay.begin_ns; });
  }

  // True if no line is missing.
  bool whole() const {
    std::uint64_t issued = 0;
    for (const read::Collectives& c : read::collectives_of(rank)) issued += c.count;
    return rank.end != read::End::lost && all.size() == issued;
  }

  // Returns the calls of these kinds, split where a line is missing.
  std::vector<Stays> stretches(const std::bitset<kBucketCount>& kinds) const {
    std::vector<Stays> parts(1);
    std::map<std::int64_t, std::uint64_t> next;  // next seq of each communicator
    for (const Call& call : all) {
      const auto [place, first] = next.try_emplace(call.comm, call.seq);
      if (place->second != call.seq && !parts.back().empty()) parts.emplace_back();
      place->second = call.seq + 1;
      if (kinds.test(static_cast<std::size_t>(call.stay.kind))) parts.back().push_back(call.stay);
    }
    if (parts.back().empty()) parts.pop_back();
    return parts;
  }

  struct Call {
    align::Stay stay{};
    std::int64_t comm = 0;
    std::uint64_t seq = 0;
  };
  const read::Process& rank;
  std::vector<Call> all{};
};

// True if lines are missing only outside of windows.
bool in_windows(const read::Process& process) {
  if (!process.footer || process.end == read::End::lost) return false;
  return std::ranges::all_of(process.footer->dropped, [](const auto& dropped) {
    return dropped.first == "window" || dropped.second == 0;
  });
}

// Returns why there is no shift; empty if there is one.
std::string refine(OtherFile& other, const OurCollectives& ours) {
  const Stays& theirs = other.trace->collectives();
  std::bitset<kBucketCount> kinds;
  for (const align::Stay& s : theirs) kinds.set(static_cast<std::size_t>(s.kind));
  const std::vector<Stays> stretches = ours.stretches(kinds);
  if (stretches.empty()) return "no collective that it marks has a line here";
  const bool whole = ours.whole();
  const auto shift = align::enclosing_shift(stretches, theirs, whole);
  if (!shift) {
    return fmt::format("no unique shift fits our collectives to the {} that it marks",
                       text::thousands(theirs.size()));
  }
  if (shift->ns != 0 && !whole && !in_windows(*other.process)) {
    return "lines of our collectives are missing";
  }
  other.shift = shift;
  return "";
}

// Finds the shift of each trace that marks collectives, if they prove one.
void refine_clocks(std::vector<OtherFile>& others, const run::Lines& lines) {
  std::set<const read::Process*> marked;
  for (const OtherFile& other : others) {
    if (!other.trace->collectives().empty()) marked.insert(other.process);
  }
  const auto ours = lines.each([&](const read::Process& p) -> std::optional<OurCollectives> {
    return marked.contains(&p) ? std::optional(OurCollectives(p)) : std::nullopt;
  });
  for (OtherFile& other : others) {
    const OurCollectives* of = ours.of(other.process);
    const bool none = other.trace->collectives().empty() || of == nullptr;
    other.why = none ? "it marks no collective" : refine(other, *of);
  }
}

}  // namespace

void OtherTrace::Event::read(std::string_view text) {
  fields.read(text);
  at = dur_ns = 0;
  if (!has_time()) return;
  at = read::micros_to_ns(fields["ts"]);
  if (slice()) dur_ns = read::micros_to_ns(fields["dur"]);
}

// An event's tokens are copied, so it is parsed as a whole before.
std::string OtherTrace::each_event(const std::function<void(Event&)>& f) const {
  simdjson::dom::parser whole;
  Event event;
  std::string text;
  std::optional<read::JsonPieces> pieces;
  pieces.emplace(file_, "traceEvents", [&](const read::JsonPieces::Piece& p) {
    try {
      text.reserve(p.text.size() + simdjson::SIMDJSON_PADDING);
      text = p.text;
      if (const auto error = whole.parse(text.data(), text.size(), false).error()) {
        throw read::Malformed(simdjson::error_message(error));
      }
      event.read(text);
      f(event);
    } catch (const read::Malformed& e) {
      pieces->fail(p.byte, p.line, std::string("in this event: ") + e.what());
    }
  });
  read::Input in(file_);
  std::string bytes(kPieceBytes, '\0');
  while (const std::size_t got = in.read(bytes.data(), bytes.size())) {
    pieces->take(std::string_view(bytes).substr(0, got));
  }
  pieces->end();
  return pieces->rest();
}

std::int64_t OtherTrace::lane(const Event& e) {
  const auto next = static_cast<std::int64_t>(lanes_.size());
  return lanes_.try_emplace({std::string(e["pid"]), std::string(e["tid"])}, next).first->second;
}

OtherTrace::OtherTrace(std::filesystem::path file) : file_(std::move(file)) {
  std::vector<Mark> marks;
  const std::string rest = each_event([&](const Event& e) {
    if (!e.has_time()) return;
    if (!e.timed()) {
      ++left_out_;
      return;
    }
    begin_ = std::min(begin_, e.at);
    end_ = std::max(end_, e.at);
    if (!e.slice()) return;
    slices_.add(lane(e), e.at, e.dur_ns);
    if (e["cat"] != "\"cpu_op\"" && e["cat"] != "\"user_annotation\"") return;
    if (auto mark = mark_of(e["name"], e["args"])) {
      mark->thread = e["tid"];
      mark->stay.begin_ns = e.at;
      mark->stay.end_ns = e.at + e.dur_ns;
      marks.push_back(*std::move(mark));
    }
  });
  simdjson::dom::parser parser;
  const simdjson::dom::element about = value_of(parser.parse(rest));
  const auto base = optional_integer(about["baseTimeNanoseconds"]);
  const bool based = base && *base >= 0 && *base < read::kLatestNs;
  rank_ = optional_integer(about["distributedInfo"]["rank"]);
  if (based) base_ns_ = *base;
  if (begin_ > end_) throw read::BadInput(file_, "it has no event");
  constexpr std::int64_t kFarthest = read::kLatestNs / 2;
  if (begin_ < -kFarthest || end_ > kFarthest || base_ns_ > kFarthest) {
    throw read::BadInput(file_, "it has an impossible time");
  }
  if (!based && end_ < kEpochTimes) {
    throw read::BadInput(file_,
                         "the origin of its times is unknown: expected \"baseTimeNanoseconds\", or "
                         "microseconds since 1970");
  }
  slices_.finish();
  collectives_ = innermost(std::move(marks));
  for (align::Stay& s : collectives_) {
    s.begin_ns += base_ns_;
    s.end_ns += base_ns_;
  }
}

// Arrows have unique ids within a category and name, overlapping ranges within a category.
std::string OtherTrace::id_of(const Event& e, std::int64_t& next_id) {
  const std::string_view id = e[e["id"].empty() ? "id2" : "id"];
  if (id.empty()) return "";
  const std::string_view ph = e["ph"];
  const bool arrow = ph == "\"s\"" || ph == "\"t\"" || ph == "\"f\"";
  std::string key = fmt::format("{} {} {}", unquoted(id), e["cat"], arrow ? e["name"] : "");
  const auto [at, fresh] = ids_.try_emplace(std::move(key), next_id);
  if (fresh) ++next_id;
  return std::to_string(at->second);
}

// Sets its times and ids.
void OtherTrace::move(Event& e, const Placement& to, std::int64_t& next_id) {
  EventFields& fields = e.fields;
  std::string id;
  if (e.metadata()) {
    for (const char* no_part_of_it : {"ts", "dur"}) fields.set(no_part_of_it, "");
  } else {
    const std::int64_t at = base_ns_ + e.at;
    fields.set("ts", micros(to.moved(at)));
    if (e.slice()) {
      const std::int64_t cut = slices_.cut_ns(lane(e), e.at, e.dur_ns);
      fields.set("dur", micros(to.length(at, e.dur_ns - cut)));
      if (cut != 0) {
        EventFields args;
        if (e["args"].starts_with('{')) args.read(e["args"]);
        args.set("cut", micros(cut));
        fields.set("args", '{' + args.text() + '}');
      }
    }
    id = id_of(e, next_id);
  }
  fields.set("id", id);
  for (const char* not_ours : {"id2", "bind_id", "scope"}) fields.set(not_ours, "");
}

void OtherTrace::put(const Placement& to, std::int64_t first_lane, std::int64_t& next_id,
                     const std::function<void(Pen&)>& full) {
  ids_.clear();
  Pen out;
  each_event([&](Event& e) {
    // Merge writes its own process names and sort order.
    const bool shown = e.metadata() ? e["name"] == "\"thread_name\""
                                    : !e["ph"].empty() && e.has_time() && e.timed();
    if (!shown) return;
    const std::string category(unquoted(e["cat"]));
    const std::int64_t tid = first_lane + lane(e);
    move(e, to, next_id);
    e.fields.set("pid", std::to_string(to.pid));
    e.fields.set("tid", std::to_string(tid));
    e.fields.set("cat", "");
    const std::string text = e.fields.text();
    out.line(category.size() + text.size())
        << "{\"cat\":\"OTHER," << category << "\"," << text << "}";
    if (out.size() >= kPieceBytes) full(out);
  });
  full(out);
}

std::string OtherFile::clock() const {
  if (!shift) return "the wall clock: " + why;
  return fmt::format("refined by {} collective{}, shifted {} us", shift->pairs,
                     shift->pairs == 1 ? "" : "s", micros(shift->ns));
}

std::vector<OtherFile> other_files(const std::vector<std::string>& with,
                                   const std::vector<const read::Process*>& chosen,
                                   const run::Lines& lines, std::vector<read::Skipped>& skipped) {
  std::vector<OtherFile> found;
  std::optional<read::BadInput> first_error;
  for (const std::string& word : with) {
    static const std::regex kGiven("([0-9]{1,18})=(.*)");
    std::smatch parts;
    const bool given = std::regex_match(word, parts, kGiven);
    const std::string pattern = given ? parts[2].str() : word;
    const std::vector<fs::path> files = files_of(pattern);
    if (files.empty()) throw read::BadInput(fs::path(pattern), "--with: no such file");
    for (const fs::path& file : files) {
      std::optional<std::int64_t> rank;
      if (given) rank = std::stoll(parts[1]);
      try {
        const auto trace = std::make_shared<OtherTrace>(file);
        if (!rank) rank = trace->rank();
        if (!rank) rank = rank_in_name(file);
        const read::Process& process = owner_of(file, rank, chosen);
        require_same_time(file, *trace, chosen);
        found.push_back({file, trace, &process});
      } catch (const read::BadInput& e) {
        // Its rank was filtered out.
        const bool unasked = rank && std::ranges::count(lines.job().ranks, *rank) != 0 &&
                             process_of(*rank, chosen) == nullptr;
        skipped.push_back({std::string(e.what()) + "; left out", !unasked});
        if (!first_error) first_error = e;
      }
    }
  }
  if (found.empty() && first_error) throw *first_error;
  refine_clocks(found, lines);
  return found;
}

std::vector<std::string> notes(const std::vector<OtherFile>& others) {
  const auto name = [](const OtherFile& o) { return text::printable(o.file.filename().string()); };
  std::map<std::string, std::vector<const OtherFile*>> by_clock;
  for (const OtherFile& other : others) {
    by_clock[other.shift ? "" : other.clock()].push_back(&other);
  }
  std::vector<std::string> said;
  for (const auto& [clock, files] : by_clock) {
    // Shows the file that was shifted furthest.
    const OtherFile& one = **std::ranges::max_element(
        files, {}, [](const OtherFile* o) { return std::abs(o->shift_ns()); });
    const std::string more = files.size() == 1
                                 ? ""
                                 : fmt::format("; {} more {}", files.size() - 1,
                                               clock.empty() ? "by no more than that" : "too");
    said.push_back(name(one) + ": " + one.clock() + more);
  }
  std::uint64_t theirs = 0;
  std::uint64_t ours = 0;
  for (const OtherFile& other : others) {
    if (other.shift) theirs += other.shift->pairs;
    for (const read::Collectives& c : read::collectives_of(*other.process)) ours += c.count;
    if (const std::uint64_t n = other.trace->left_out(); n != 0) {
      said.push_back(fmt::format("{}: {} {} left out, as their ts is 0 or their length negative",
                                 name(other), text::thousands(n),
                                 n == 1 ? "event is" : "events are"));
    }
  }
  if (theirs != 0) {
    said.push_back(fmt::format("PyTorch's {} {} of our {} collectives",
                               others.size() == 1 ? "trace has" : "traces have",
                               text::thousands(theirs), text::thousands(ours)));
  }
  return said;
}

}  // namespace tprof::trace_export
