#include "config.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "complain.h"
#include "interpose/format/text.h"

namespace tprof {
namespace {

constexpr std::uint64_t kDefaultQuota = std::uint64_t{64} << 20;
constexpr std::uint32_t kDefaultRingRecords = 16384;  // 1 MiB a thread: 8 ms at 2 million calls/s
constexpr char kDefaultOutputDir[] = "tprof-traces";

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

void bad_value(const char* name, std::string_view value, std::string_view expected) {
  char what[384];
  std::size_t n = 0;
  for (std::string_view part : {std::string_view(name), std::string_view("="), value}) {
    const std::size_t take = std::min(part.size(), sizeof what - n);
    std::memcpy(what + n, part.data(), take);
    n += take;
  }
  say({what, n}, ": expected ", expected);
}

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view from) {
  const std::size_t n = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), n);
  to[n] = '\0';
}

// "64MiB", "1G", "4096": binary multiples, the unit's "iB" or "B" optional.
bool parse_bytes(std::string_view text, std::uint64_t& bytes) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc()) return false;
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  int shift = 0;
  if (!unit.empty()) {
    const std::size_t at = std::string_view("KMGT").find(unit[0]);
    if (at != std::string_view::npos) {
      shift = 10 * (static_cast<int>(at) + 1);
      unit.remove_prefix(1);
    }
  }
  if (!unit.empty() && unit != "B" && unit != "iB") return false;
  if (shift != 0 && bytes >> (64 - shift) != 0) return false;
  bytes <<= shift;
  return true;
}

// Calls f(first, last) for each range; false where the text is not such a list.
template <typename F>
bool each_range(std::string_view list, F&& f) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view item = prefix(list, comma);
    std::int64_t first = 0;
    const char* end = item.data() + item.size();
    auto [rest, error] = std::from_chars(item.data(), end, first);
    if (error != std::errc() || first < 0) return false;
    std::int64_t last = first;
    if (rest != end) {
      if (*rest != '-') return false;
      const auto second = std::from_chars(rest + 1, end, last);
      if (second.ec != std::errc() || second.ptr != end || last < first) return false;
    }
    f(first, last);
    list.remove_prefix(comma);
    if (list.empty()) return true;
    list.remove_prefix(1);
  }
  return false;
}

}  // namespace

bool disabled_by_environment() {
  const std::string_view value = environment("TPROF_DISABLE");
  return !value.empty() && value != "0" && value != "off" && value != "false" && value != "no";
}

bool rank_in_list(const char* list, std::int64_t rank) {
  bool found = false;
  each_range(list, [&](std::int64_t first, std::int64_t last) {
    found = found || (first <= rank && rank <= last);
  });
  return found;
}

Config read_config() {
  Config c{};
  const std::string_view dir = environment("TPROF_OUTPUT_DIR");
  copy_text(c.output_dir, dir.empty() ? std::string_view(kDefaultOutputDir) : dir);
  copy_text(c.run_id, environment("TPROF_RUN_ID"));

  c.events = EventLines::on;
  const std::string_view events = environment("TPROF_EVENTS");
  if (events == "off") {
    c.events = EventLines::off;
  } else if (events == "all") {
    c.events = EventLines::all;
  } else if (!events.empty() && events != "on") {
    bad_value("TPROF_EVENTS", events, "on, off or all; using on");
  }

  c.quota = kDefaultQuota;
  const std::string_view quota = environment("TPROF_QUOTA");
  if (!quota.empty() && !parse_bytes(quota, c.quota)) {
    c.quota = kDefaultQuota;
    bad_value("TPROF_QUOTA", quota, "bytes such as 64MiB, or 0 for no limit; using 64MiB");
  }

  c.all_ranks = true;
  const std::string_view ranks = environment("TPROF_RANKS");
  if (!ranks.empty()) {
    if (ranks.size() < sizeof c.ranks && each_range(ranks, [](std::int64_t, std::int64_t) {})) {
      c.all_ranks = false;
      copy_text(c.ranks, ranks);
    } else {
      bad_value("TPROF_RANKS", ranks, "ranks such as 0-7,64; all ranks write lines");
    }
  }

  c.copy_element_size = 1;
  const std::string_view size = environment("TPROF_COPY_ELEMENT_SIZE");
  if (size == "2" || size == "4" || size == "8") {
    c.copy_element_size = static_cast<std::uint32_t>(size[0] - '0');
  } else if (!size.empty() && size != "1") {
    bad_value("TPROF_COPY_ELEMENT_SIZE", size, "1, 2, 4 or 8 bytes; using 1");
  }

  c.ring_records = kDefaultRingRecords;
  const std::string_view ring = environment("TPROF_RING");
  std::uint64_t records = 0;
  if (!ring.empty()) {
    const bool power_of_two = parse_bytes(ring, records) && records >= kSmallestRing &&
                              records <= (1U << 22) && (records & (records - 1)) == 0;
    if (power_of_two) {
      c.ring_records = static_cast<std::uint32_t>(records);
    } else {
      bad_value("TPROF_RING", ring, "records per thread, a power of two from 64; using 16384");
    }
  }

  const std::string_view redact = environment("TPROF_REDACT");
  c.redact = redact != "off";
  if (c.redact && !redact.empty() && redact != "on") {
    bad_value("TPROF_REDACT", redact, "on or off; using on");
  }
  return c;
}

}  // namespace tprof
