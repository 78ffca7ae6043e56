// libtprof.so's settings. The first byte chooses one, and the rest is its value.
#include <cstdlib>
#include <string>

#include "interpose/session/config.h"
#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tprof;
  constexpr const char* kNames[] = {
      "TPROF_OUTPUT_DIR", "TPROF_EVENTS", "TPROF_QUOTA",   "TPROF_RANKS",
      "TPROF_RUN_ID",     "TPROF_RING",   "TPROF_METRICS", "TPROF_COPY_ELEMENT_SIZE",
      "TPROF_DISABLE"};
  if (size == 0) return 0;
  const char* name = kNames[data[0] % std::size(kNames)];
  const std::string value(fuzz::text_of(data + 1, size - 1));
  setenv(name, value.c_str(), 1);
  const Config c = read_config();
  unsetenv(name);
  fuzz::promise(c.copy_element_size == 1 || c.copy_element_size == 2 || c.copy_element_size == 4 ||
                    c.copy_element_size == 8,
                "an element size that there is");
  fuzz::promise(c.ring >= 64 && (c.ring & (c.ring - 1)) == 0, "a ring is a power of two");
  c.ranks.has(3);
  RankList ranks;
  parse_ranks(value, ranks);
  ranks.has(3);
  return 0;
}
