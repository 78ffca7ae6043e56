// A compressed trace: text that is compressed here in two pieces, then cut and damaged. Bytes 0-1
// say where the pieces meet, 2-3 how many bytes are cut off, 4-5 which byte changes, and 6 its XOR.
#include <zlib.h>

#include <algorithm>

#include "support/fuzz.h"
#include "support/tool_run.h"

namespace {

std::string gzip(std::string_view text) {
  z_stream z{};
  constexpr int kWithGzipHeader = 31;
  deflateInit2(&z, 1, Z_DEFLATED, kWithGzipHeader, 8, Z_DEFAULT_STRATEGY);
  std::string bytes(deflateBound(&z, text.size()) + 64, '\0');
  std::string copy(text);
  z.next_in = reinterpret_cast<Bytef*>(copy.data());
  z.avail_in = static_cast<uInt>(copy.size());
  z.next_out = reinterpret_cast<Bytef*>(bytes.data());
  z.avail_out = static_cast<uInt>(bytes.size());
  deflate(&z, Z_FINISH);
  bytes.resize(z.total_out);
  deflateEnd(&z);
  return bytes;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tprof::fuzz;
  if (size < 7) return 0;
  const auto number = [&](int i) { return std::size_t{data[i]} | std::size_t{data[i + 1]} << 8; };
  const std::string_view text = text_of(data + 7, size - 7);
  const std::size_t middle = std::min(number(0), text.size());
  std::string bytes = gzip(text.substr(0, middle)) + gzip(text.substr(middle));
  if (number(2) < bytes.size()) bytes.resize(bytes.size() - number(2));
  if (number(4) < bytes.size() && data[6] != 0) bytes[number(4)] ^= static_cast<char>(data[6]);
  run_all_readers(write_file("rank.json.gz", bytes));
  return 0;
}
