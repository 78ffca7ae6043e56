#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "check/names.h"
#include "interpose/format/memory.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Amounts;
using text::thousands;

constexpr const char* kAll = "ALL";
constexpr const char* kObjects = "ALLGATHER_OBJ";

// True if the host memory of any copy of the bucket is known.
bool any_host_memory(const tables::Summary& s, std::size_t bucket) {
  for (std::size_t m = 0; m < kHostMemoryKinds; ++m) {
    const bool known = static_cast<HostMemory>(m) != HostMemory::unknown;
    if (known && s.host_memory[m][bucket].calls != 0) return true;
  }
  return false;
}

// People see the buckets with calls, and their parts below.
std::vector<BucketRow> shown_buckets(const tables::Summary& s) {
  std::vector<BucketRow> rows;
  const auto row = [&](std::string_view name, const Amounts& a) {
    rows.push_back({std::string(name), "", a});
  };
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (s.buckets[b].calls != 0) row(kBuckets[b].name, s.buckets[b]);
    const bool gathers = static_cast<Bucket>(b) == Bucket::ALLGATHER;
    if (gathers && s.object_gathers) row("  of objects", *s.object_gathers);
    if (!any_host_memory(s, b)) continue;
    for (std::size_t m = kHostMemoryKinds; m-- > 0;) {
      const Amounts& a = s.host_memory[m][b];
      if (a.calls != 0) row(fmt::format("  {}", kHostMemoryNames[m]), a);
    }
  }
  return rows;
}

std::vector<BucketRow> every_bucket(const tables::Summary& s) {
  std::vector<BucketRow> rows;
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    rows.push_back({std::string(kBuckets[b].name), "", s.buckets[b]});
  }
  if (s.object_gathers) rows.push_back({kObjects, "", *s.object_gathers});
  return rows;
}

std::vector<Column<BucketRow>> total_columns(const Amounts& all) {
  std::vector<Column<BucketRow>> columns = {{"bucket", "bucket", Unit::text, &BucketRow::label}};
  append(columns, call_figures());
  append(columns, Figures{{nullptr, "failed", Unit::count, &Amounts::failed},
                          {nullptr, "unfinished", Unit::count, &Amounts::unfinished},
                          {"of bytes", nullptr, Unit::right_text,
                           [bytes = all.bytes](const Amounts& a) { return ratio(a.bytes, bytes); },
                           Show::if_room}});
  append(columns, time_figures(all.device_timed != 0));
  return columns;
}

Notes notes(const tables::Summary& s, const Amounts& all) {
  const bool some_left = std::ranges::any_of(
      s.buckets, [](const Amounts& a) { return a.exposure_known != 0 && !exposure_tells(a); });
  return notes_if(
      {{all.exposure_known != 0,
        fmt::format(
            "exposed: while nothing was computed; % of the time of {} where known{}",
            check::counted(all.exposure_known, "call"),
            some_left ? "; shown for buckets in which it is for at least half of them" : "")},
       {s.compute.window_ns != 0, fmt::format("compute kernels: busy {} of {} of device time",
                                              ratio(s.compute.busy_ns, s.compute.window_ns),
                                              text::duration(s.compute.window_ns))}});
}

std::vector<Column<BucketRow>> rank_columns(bool timed) {
  std::vector<Column<BucketRow>> all = {
      {"rank", nullptr, Unit::text, &BucketRow::label, Show::label},
      {"bucket", nullptr, Unit::text, &BucketRow::bucket}};
  append(all, Figures{{"calls", "calls", Unit::count, &Amounts::calls},
                      {"elements", "elements", Unit::count, &Amounts::elements, Show::if_room},
                      {"bytes", "bytes", Unit::bytes, &Amounts::bytes},
                      {nullptr, "host_ns", Unit::ns, &Amounts::host_ns}});
  append(all, people_only(time_figures(timed)));
  return all;
}

void add_rank(std::vector<BucketRow>& to, std::int64_t rank, const tables::Buckets& totals,
              std::optional<std::size_t> bucket) {
  const std::string name = std::to_string(rank);
  if (bucket) {
    to.push_back({name, "", *bucket < kBucketCount ? totals[*bucket] : tables::sum(totals)});
    return;
  }
  const std::size_t before = to.size();
  add_rows(to, name, totals);
  if (to.size() == before) to.push_back({name, "none", {}});
}

// An object with each row's figures.
Section figures_by_name(const std::vector<BucketRow>& rows, const std::string& at) {
  std::vector<Column<BucketRow>> columns = {{nullptr, "name", Unit::text, &BucketRow::label}};
  append(columns, call_figures());
  append(columns, time_figures(true));
  return {.table = sheet(columns, rows, For::programs), .at = at, .shape = Shape::members};
}

using tables::CommSummary;

constexpr std::ptrdiff_t kCommsShown = 20;
constexpr const char* kGuess = "role?: a guess from what was sent in which pass.";

// "588 to 589" if ranks differ, as in `tprof check`.
std::string collectives_text(const CommSummary& c) {
  const std::string most = text::thousands(c.collectives);
  const std::uint64_t fewest = c.fewest.value_or(c.collectives);
  return fewest == c.collectives ? most : text::thousands(fewest) + " to " + most;
}

std::vector<Column<CommSummary>> comm_columns() {
  std::vector<Column<CommSummary>> all = {
      {"communicator", "id", Unit::text, &CommSummary::id},
      {"name", "name", Unit::name, &CommSummary::name},
      {"role", nullptr, Unit::name, tables::role_text, Show::if_any},
      {nullptr, "role", Unit::name, &CommSummary::role},
      {nullptr, "role_guessed", Unit::text, &CommSummary::role_guessed},
      {"size", "nranks", Unit::number, &CommSummary::nranks},
      {"ranks", "ranks", Unit::text, &CommSummary::ranks},
      {"collectives", nullptr, Unit::right_text, collectives_text, Show::if_room},
      {nullptr, "collectives", Unit::count, &CommSummary::collectives}};
  append(all, Figures{{"calls", "calls", Unit::count, &read::Amounts::calls},
                      {"bytes", "bytes", Unit::bytes, &read::Amounts::bytes}});
  all.push_back({"split from", "parent", Unit::name, &CommSummary::parent, Show::if_room});
  return all;
}

using tables::MemoryOfProcess;

std::string whose(const MemoryOfProcess& m) {
  std::string name = check::name_of_rank(*m.process);
  if (m.use.device) name += fmt::format(", GPU {}", *m.use.device);
  return name;
}

// People see one row per kind.
Sheet by_kind(const tables::Memory& memory) {
  Sheet all{.heads = {{"memory", nullptr, Unit::text},
                      {"places", nullptr, Unit::count},
                      {"at the end", nullptr, Unit::bytes},
                      {"largest peak", nullptr, Unit::bytes},
                      {"of", nullptr, Unit::text},
                      {"least peak", nullptr, Unit::bytes},
                      {"of", nullptr, Unit::text}}};
  for (const std::string_view name : kMemoryKinds) {
    std::uint64_t bytes = 0;
    std::vector<const MemoryOfProcess*> of;
    for (const MemoryOfProcess& m : memory.uses) {
      if (m.use.kind != name) continue;
      of.push_back(&m);
      bytes = read::saturated_sum(bytes, m.use.bytes);
    }
    if (of.empty()) continue;
    const auto peak = [](const MemoryOfProcess* m) { return m->use.peak; };
    const MemoryOfProcess& most = **std::ranges::max_element(of, {}, peak);
    const MemoryOfProcess& least = **std::ranges::min_element(of, {}, peak);
    all.rows.push_back(
        {name, of.size(), bytes, most.use.peak, whose(most), least.use.peak, whose(least)});
  }
  return all;
}

// Programs get each process and device.
std::vector<Column<MemoryOfProcess>> place_columns() {
  using Use = MemoryOfProcess;
  return {{nullptr, "rank", Unit::text, &Use::process},
          {nullptr, "pid", Unit::number, [](const Use& m) { return m.process->header.pid; }},
          {nullptr, "kind", Unit::text, [](const Use& m) { return m.use.kind; }},
          {nullptr, "device", Unit::number, [](const Use& m) { return m.use.device; }},
          {nullptr, "bytes", Unit::bytes, [](const Use& m) { return m.use.bytes; }},
          {nullptr, "peak", Unit::bytes, [](const Use& m) { return m.use.peak; }}};
}

}  // namespace

Section bucket_section(const tables::Summary& s, std::string title, For who) {
  const Amounts all = tables::sum(s.buckets);
  std::vector<BucketRow> rows = who == For::people ? shown_buckets(s) : every_bucket(s);
  rows.push_back({kAll, "", all});
  return {.title = std::move(title),
          .table = sheet(total_columns(all), rows, who),
          .notes = notes(s, all),
          .at = "",
          .shape = Shape::members};
}

Section rank_section(const tables::Summary& s, For who, std::optional<std::size_t> bucket) {
  const std::vector<Column<BucketRow>> columns =
      rank_columns(tables::sum(s.buckets).device_timed != 0);
  Section of = {.title = "Per rank", .table = sheet(columns, {}, who), .shape = Shape::columns};
  if (bucket) {
    of.at = fmt::format("/{}/per_rank", *bucket < kBucketCount ? kBuckets[*bucket].name : kAll);
  }
  constexpr std::size_t kAtOnce = 1024;  // rows are much larger than cells
  std::vector<BucketRow> rows;
  const auto add = [&] {
    std::ranges::move(sheet(columns, rows, who).rows, std::back_inserter(of.table.rows));
    rows.clear();
  };
  tables::each_rank(s, [&](std::int64_t rank, const tables::Buckets& totals) {
    add_rank(rows, rank, totals, bucket);
    if (rows.size() >= kAtOnce) add();
  });
  add();
  return of;
}

std::vector<std::pair<const char*, Section>> split_buckets(const tables::Summary& s) {
  std::vector<std::pair<const char*, Section>> all;
  if (!s.object_gathers) {
    all.emplace_back("buckets", Section{.at = fmt::format("/{}", kObjects), .shape = Shape::row});
  }
  for (std::size_t p = 0; p < tables::kPhaseCount; ++p) {
    std::vector<BucketRow> rows;
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const Amounts& a = s.phases[p][b];
      if (a.calls != 0) rows.push_back({std::string(kBuckets[b].name), "", a});
    }
    all.emplace_back("phases", figures_by_name(rows, fmt::format("/{}", tables::kPhaseNames[p])));
  }
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (!tables::has_host_side(static_cast<Bucket>(b))) continue;
    std::vector<BucketRow> rows;
    for (std::size_t m = 0; m < kHostMemoryKinds; ++m) {
      const Amounts& a = s.host_memory[m][b];
      if (a.calls != 0) rows.push_back({std::string(kHostMemoryNames[m]), "", a});
    }
    all.emplace_back("host_memory", figures_by_name(rows, fmt::format("/{}", kBuckets[b].name)));
  }
  return all;
}

Section section_of(const std::vector<CommSummary>& comms, For who) {
  const bool guessed =
      std::any_of(comms.begin(), comms.begin() + std::min(std::ssize(comms), kCommsShown),
                  [](const CommSummary& c) { return !c.role_sure && !c.role.empty(); });
  return {.title = "Communicators",
          .table = sheet(comm_columns(), comms, who),
          .notes = guessed ? Notes{kGuess} : Notes(),
          .at = "",
          .room = {.rows = kCommsShown}};
}

Section section_of(const tables::Memory& memory, For who) {
  return {.title = "Memory that the program allocated",
          .table = who == For::people ? by_kind(memory) : sheet(place_columns(), memory.uses, who),
          .notes = {"as requested; at the end: in total. The device's granularity, CUDA's own "
                    "memory and pool overhead come on top."},
          .at = ""};
}

Figures call_figures(Show elements) {
  return {{"calls", "calls", Unit::count, &Amounts::calls},
          {nullptr, "count", Unit::count, &Amounts::count},
          {"elements", "elements", Unit::count, &Amounts::elements, elements},
          {"bytes", "bytes", Unit::bytes, &Amounts::bytes}};
}

Figures time_figures(bool timed) {
  const auto known = [](std::uint64_t Amounts::*n, std::uint64_t Amounts::*ns) {
    return [=](const Amounts& a) { return a.*n == 0 ? Value() : Value(a.*ns); };
  };
  return {
      {"host time", "host_ns", Unit::ns_not_0, &Amounts::host_ns,
       timed ? Show::if_room : Show::always},
      {"device time", "device_ns", Unit::ns, known(&Amounts::device_timed, &Amounts::device_ns)},
      {nullptr, "device_timed", Unit::count, &Amounts::device_timed},
      {nullptr, "exposure_known", Unit::count, &Amounts::exposure_known},
      {nullptr, "exposure_known_ns", Unit::ns,
       known(&Amounts::exposure_known, &Amounts::exposure_known_ns)},
      {"exposed", "exposed_ns", Unit::exposed,
       [](const Amounts& a) {
         const Part part = {a.exposed_ns, exposure_tells(a) ? a.exposure_known_ns : 0};
         return a.exposure_known == 0 ? Value() : Value(part);
       },
       Show::if_any}};
}

Figure mean_host(Show show) {
  return {"mean host", nullptr, Unit::ns,
          [](const Amounts& a) {
            const std::uint64_t made = a.calls - a.replayed;
            return made == 0 ? Value() : Value(a.host_ns / made);
          },
          show};
}

Figures people_only(Figures figures) {
  for (Figure& f : figures) f.key = nullptr;
  return figures;
}

bool exposure_tells(const Amounts& a) {
  return a.exposure_known != 0 && 2 * a.exposure_known >= a.device_timed;
}

std::vector<Column<BucketRow>> bucket_columns(const char* title, const char* key,
                                              std::optional<Column<BucketRow>> by) {
  std::vector<Column<BucketRow>> all = {{title, key, Unit::text, &BucketRow::label, Show::label}};
  if (by) all.push_back(*by);
  all.push_back({"bucket", "bucket", Unit::text, &BucketRow::bucket});
  append(all, call_figures());
  return all;
}

Json figures(const Amounts& a) {
  static const Figures kColumns = [] {
    Figures all = call_figures();
    for (Figure& f : time_figures(true)) all.push_back(std::move(f));
    return all;
  }();
  return row_json(kColumns, a);
}

}  // namespace tprof::report
