#include "read/told_lines.h"

#include <algorithm>
#include <span>

#include "interpose/format/scopes.h"
#include "read/error.h"
#include "read/json.h"
#include "read/metadata.h"

namespace tprof::read {

static void fill(const Fields& args, StepLine& step) {
  args.need_in(kNotNegative, "step", step.step);
  args.need_time("ts", step.from_ns);
  args.need_time("dur", step.to_ns);
  step.to_ns += step.from_ns;
  args.may("launches", step.launches, "lost", step.lost);
  step.found = args.has("found");
  args.each("rows", [&](const Fields& o) {
    Row row;
    fill(o, static_cast<RowKey&>(row));
    for (const Figure& f : std::span(kFigures).first(5)) {  // the host's figures
      o.need(f.key, row.amounts.*f.of);
    }
    step.rows.push_back(row);
  });
  step.rows.shrink_to_fit();
}

static void fill(const Fields& args, GroupLine& group) {
  std::int64_t from_ns = 0;
  args.need("group", group.group);
  args.need_time("ts", from_ns);
  args.need_time("dur", group.to_ns);
  group.to_ns += from_ns;
}

static void fill(const Fields& args, WindowLine& window) {
  args.need_time("ts", window.from_ns);
  if (!args.has("dur")) return;
  args.need_time("dur", window.to_ns);
  window.to_ns += window.from_ns;
}

constexpr std::size_t kMaxFrames = 64;

static void fill(const Fields& o, SiteFrame& frame) {
  o.may("function", frame.function, "file", frame.file, "line", frame.line);
}

static void fill(const Fields& o, NativeFrames& frames) {
  o.need("object", frames.object);
  o.may("build_id", frames.build_id);
  for (const element offset : o.get<array>("offsets")) {
    if (frames.offsets.size() == kMaxFrames) return;
    if (offset.get(frames.offsets.emplace_back()) != simdjson::SUCCESS) throw Malformed("offsets");
  }
}

static void fill(const Fields& args, SiteLine& site) {
  args.need("site", site.site);
  args.may("object", site.object, "offset", site.offset, "symbol", site.symbol);
  args.need("frames", site.frames);
  args.may("native", site.native, "native_cut", site.native_cut);
  site.frames.resize(std::min(site.frames.size(), kMaxFrames));
  std::size_t left = kMaxFrames;
  for (NativeFrames& in_one : site.native) {
    in_one.offsets.resize(std::min(in_one.offsets.size(), left));
    left -= in_one.offsets.size();
  }
  std::erase_if(site.native, [](const NativeFrames& in_one) { return in_one.offsets.empty(); });
}

static void fill(const Fields& o, ScopeTotal& s) {
  o.need("scope", s.name);
  o.may("category", s.category);
  o.need("count", s.count, "total_ns", s.total_ns, "max_ns", s.max_ns);
  o.may("elements", s.elements, "bytes", s.bytes, "errors", s.errors, "device_timed",
        s.device_timed, "device_ns", s.device_ns);
  for (const element bin : o.get<array>("bins")) {
    std::uint64_t from = 0;
    std::uint64_t n = 0;
    if (bin.at(0).get(from) != simdjson::SUCCESS || bin.at(1).get(n) != simdjson::SUCCESS ||
        from > kLongestScope || from != scope_bin_from(scope_bin(from))) {
      throw Malformed("expected pairs of a bin's shortest duration and a number in \"bins\"");
    }
    s.bins[from] = saturated_sum(s.bins[from], n);
  }
}

static void fill(const Fields& args, ScopesOfLedger& ledger) {
  args.may("scopes", ledger.scopes);
}

template <typename T>
T parsed_line(const Line& line, const std::filesystem::path& file) {
  try {
    thread_local simdjson::dom::parser parser;
    return Fields(object_in(parser, line.text)).get<T>("args");
  } catch (const Malformed& e) {
    throw BadInput(file, line.offset, e.what());
  }
}
template StepLine parsed_line<StepLine>(const Line&, const std::filesystem::path&);
template GroupLine parsed_line<GroupLine>(const Line&, const std::filesystem::path&);
template WindowLine parsed_line<WindowLine>(const Line&, const std::filesystem::path&);
template SiteLine parsed_line<SiteLine>(const Line&, const std::filesystem::path&);
template ScopesOfLedger parsed_line<ScopesOfLedger>(const Line&, const std::filesystem::path&);

void add(ScopeTotal& to, const ScopeTotal& more) {
  for (const auto sum :
       {&ScopeTotal::count, &ScopeTotal::total_ns, &ScopeTotal::elements, &ScopeTotal::bytes,
        &ScopeTotal::errors, &ScopeTotal::device_timed, &ScopeTotal::device_ns}) {
    to.*sum = saturated_sum(to.*sum, more.*sum);
  }
  to.max_ns = std::max(to.max_ns, more.max_ns);
  for (const auto& [from, n] : more.bins) to.bins[from] = saturated_sum(to.bins[from], n);
}

}  // namespace tprof::read
