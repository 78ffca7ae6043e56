#include "read/load.h"

#include <simdjson.h>
#include <zlib.h>

#include "read/error.h"
#include "read/metadata.h"

namespace tprof::read {
namespace {

// Returns the whole lines among the first `size` bytes of a file, plain or gzipped.
Block first_lines(const std::filesystem::path& file, unsigned size) {
  Block block;
  const gzFile opened = gzopen(file.c_str(), "rbe");
  if (opened == nullptr) return block;
  block.text.reserve(size + simdjson::SIMDJSON_PADDING);
  block.text.resize(size);
  const int got = gzread(opened, block.text.data(), size);
  gzclose(opened);
  block.text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  block.text.resize(block.text.rfind('\n') + 1);
  return block;
}

}  // namespace

bool opens_array(std::string_view text) {
  return text.starts_with("[\n") || text.starts_with("[\r\n");
}

Beginning beginning_of(const Block& first_lines) {
  if (!opens_array(first_lines.text)) return {};
  MetadataParser parser({});
  try {
    each_line(first_lines, [&](const Line& line) {
      const bool known = parser.merged() || !parser.processes().empty();
      if (!known && is_metadata(line.text)) parser.line(line);
    });
  } catch (const BadInput&) {
    return {};
  }
  if (parser.merged()) return {true, {}};
  if (parser.processes().empty()) return {};
  return {false, std::move(parser.processes()[0].header)};
}

Beginning beginning_of(const std::filesystem::path& file) {
  constexpr unsigned kHeader = 8U << 10;  // enough for any ordinary header
  Beginning found = beginning_of(first_lines(file, kHeader));
  if (!found.merged && !found.header) found = beginning_of(first_lines(file, 8 * kHeader));
  return found;
}

}  // namespace tprof::read
