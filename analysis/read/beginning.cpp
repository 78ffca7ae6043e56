#include "read/load.h"

#include "read/error.h"
#include "read/metadata.h"

namespace tprof::read {
namespace {

// Returns the whole lines among the first `size` bytes of a file, and more if the first is longer.
Block first_lines(const std::filesystem::path& file, std::size_t size) {
  Block block;
  const Source source{file, Source{}.cut, {}};
  try {
    BlockReader(source, size).next(block);
  } catch (const BadInput&) {
    block.text.clear();
  }
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
  constexpr std::size_t kHeader = 8U << 10;  // enough for any ordinary header
  Beginning found = beginning_of(first_lines(file, kHeader));
  if (!found.merged && !found.header) found = beginning_of(first_lines(file, 8 * kHeader));
  return found;
}

}  // namespace tprof::read
