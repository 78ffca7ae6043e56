#include "read/beginning.h"

#include <simdjson.h>

#include <fstream>

#include "read/error.h"
#include "read/lines.h"
#include "read/metadata.h"

namespace tprof::read {
namespace {

constexpr std::size_t kFirst = std::size_t{8} << 10;  // the header is in them, unless it is odd
constexpr std::size_t kMost = std::size_t{64} << 10;

// False: no more is wanted.
bool take(const Block& block, MetadataParser& parser) {
  if (block.offset == 0 && !block.text.starts_with('[')) return false;
  each_line(block, [&](const Line& line) {
    const bool told = parser.merged() || !parser.processes().empty();
    if (!told && is_metadata(line.text)) parser.line(line);
  });
  return !parser.merged() && parser.processes().empty() && block.offset < kMost;
}

// True: the whole lines among the first bytes told all, or that it is nothing.
bool take_first(const std::filesystem::path& file, MetadataParser& parser) {
  std::ifstream in(file, std::ios::binary);
  Block block;
  block.text.reserve(kFirst + simdjson::SIMDJSON_PADDING);
  block.text.resize(kFirst);
  in.read(block.text.data(), static_cast<std::streamsize>(kFirst));
  block.text.resize(static_cast<std::size_t>(in.gcount()));
  if (block.text.starts_with("\x1f\x8b")) return false;  // gzip
  block.text.resize(block.text.rfind('\n') + 1);
  return !take(block, parser);
}

}  // namespace

Beginning beginning_of(const std::filesystem::path& file) {
  MetadataParser parser(file);
  try {
    if (!take_first(file, parser)) {
      const Source source{file, Source{}.cut, {}};
      BlockReader reader(source, kFirst);
      for (Block block; reader.next(block) && take(block, parser);) {
      }
    }
  } catch (const BadInput&) {
    return {};
  }
  if (parser.merged()) return {true, {}};
  if (parser.processes().empty()) return {};
  return {false, std::move(parser.processes()[0].header)};
}

}  // namespace tprof::read
