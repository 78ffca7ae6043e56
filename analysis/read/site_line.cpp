#include "read/site_line.h"

#include "read/json.h"

namespace tprof::read {
namespace {

constexpr std::size_t kMaxFrames = 64;

void add_native(const object& args, SiteLine& site) {
  if (!find(args, "native")) return;
  site.native_cut = flag(args, "native_cut");
  std::size_t frames = 0;
  for (const object& o : objects_of(args, "native")) {
    site.native.push_back({text(o, "object"), text_or_empty(o, "build_id")});
    std::vector<std::uint64_t>& offsets = site.native.back().offsets;
    for (const element& offset : array_of(o, "offsets")) {
      if (frames++ == kMaxFrames) return;
      if (offset.get(offsets.emplace_back()) != simdjson::SUCCESS) throw Malformed("offsets");
    }
  }
}

}  // namespace

SiteLine parse_site_line(simdjson::dom::parser& parser, std::string_view line) {
  const object args = object_of(object_in(parser, line), "args");
  SiteLine site;
  site.object = text_or_empty(args, "object");
  if (find(args, "offset")) site.offset = count(args, "offset");
  site.symbol = text_or_empty(args, "symbol");
  for (const object& f : objects_of(args, "frames")) {
    if (site.frames.size() == kMaxFrames) break;
    site.frames.push_back(
        {text_or_empty(f, "function"), text_or_empty(f, "file"), integer_or(f, "line", 0)});
  }
  add_native(args, site);
  site.site = integer(args, "site");
  return site;
}

}  // namespace tprof::read
