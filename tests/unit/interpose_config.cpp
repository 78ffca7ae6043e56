// session/config.h: each setting, and that a bad value costs one line and the default.
#include <algorithm>
#include <string>
#include <vector>

#include "catch2.h"
#include "interpose/base/complain.h"
#include "interpose/session/config.h"
#include "interpose_environment.h"

using namespace tprof;
using namespace tprof::test;

namespace {

struct Reading {
  Config config;
  std::string said;
};

Reading read_with(const std::string& name, const std::string& value) {
  const Environment environment(Variables{{name, value}});
  Reading r;
  r.said = complaints_of([&] { r.config = read_config(); });
  return r;
}

bool one_line_naming(const std::string& said, const std::string& name, const std::string& value) {
  return said.starts_with("tprof: " + name + "=" + value + ": expected ") &&
         std::count(said.begin(), said.end(), '\n') == 1 && said.back() == '\n';
}

}  // namespace

TEST_CASE("the defaults are the contract's") {
  const Config c = read_config();
  CHECK(std::string(c.output_dir) == "tprof-traces");
  CHECK(std::string(c.run_id).empty());
  CHECK(c.events == EventLines::on);
  CHECK(c.quota == 64 << 20);
  CHECK(c.copy_element_size == 1);
  CHECK(c.ring == 16384);
  CHECK(c.ranks.all);
  CHECK(c.metrics.every_ns == 0);
  CHECK(c.redact);
}

TEST_CASE("TPROF_REDACT is on or off, and on where it is misspelt") {
  CHECK_FALSE(read_with("TPROF_REDACT", "off").config.redact);
  CHECK(read_with("TPROF_REDACT", "on").said == "");
  const Reading r = read_with("TPROF_REDACT", "no");
  CHECK(r.config.redact);
  CHECK(one_line_naming(r.said, "TPROF_REDACT", "no"));
}

TEST_CASE("TPROF_QUOTA takes bytes with binary units") {
  const std::map<std::string, std::uint64_t> values = {{"0", 0},
                                                       {"1", 1},
                                                       {"4096", 4096},
                                                       {"64KiB", 64 << 10},
                                                       {"64K", 64 << 10},
                                                       {"3M", 3 << 20},
                                                       {"2GB", 2ULL << 30},
                                                       {"1T", 1ULL << 40},
                                                       {"100B", 100},
                                                       {"18446744073709551615", UINT64_MAX}};
  for (const auto& [text, bytes] : values) {
    const Reading r = read_with("TPROF_QUOTA", text);
    CHECK(r.config.quota == bytes);
    CHECK(r.said == "");
  }
  for (const std::string bad :
       {"much", "-1", "1.5M", "64 MiB", "1KK", "18446744073709551616", "99999999999T", "M", " 1"}) {
    const Reading r = read_with("TPROF_QUOTA", bad);
    CHECK(r.config.quota == 64 << 20);
    CHECK(one_line_naming(r.said, "TPROF_QUOTA", bad));
  }
}

TEST_CASE("TPROF_EVENTS is on, off or all") {
  CHECK(read_with("TPROF_EVENTS", "off").config.events == EventLines::off);
  CHECK(read_with("TPROF_EVENTS", "all").config.events == EventLines::all);
  CHECK(read_with("TPROF_EVENTS", "on").said == "");
  for (const std::string bad : {"ON", "1", "offf"}) {
    const Reading r = read_with("TPROF_EVENTS", bad);
    CHECK(r.config.events == EventLines::on);
    CHECK(one_line_naming(r.said, "TPROF_EVENTS", bad));
  }
}

TEST_CASE("TPROF_RANKS lists ranks and ranges") {
  const Reading r = read_with("TPROF_RANKS", "0-7,64,100-101");
  CHECK(r.said == "");
  CHECK_FALSE(r.config.ranks.all);
  for (const std::int64_t rank : {0, 3, 7, 64, 100, 101}) {
    CHECK(r.config.ranks.has(rank));
  }
  for (const std::int64_t rank : {-1, 8, 63, 65, 99, 102}) {
    CHECK_FALSE(r.config.ranks.has(rank));
  }
  const std::string too_long(300, '1');
  for (const std::string& bad : std::vector<std::string>{"a", "1-", "-3", "3-1", "1,,2", "1,",
                                                         "1 2", "1-2-3", "0x1", too_long}) {
    const Reading wrong = read_with("TPROF_RANKS", bad);
    CHECK(wrong.config.ranks.all);
    CHECK(std::count(wrong.said.begin(), wrong.said.end(), '\n') == 1);
  }
}

TEST_CASE("TPROF_COPY_ELEMENT_SIZE is a power of two up to 8") {
  for (const char size : {'1', '2', '4', '8'}) {
    const Reading r = read_with("TPROF_COPY_ELEMENT_SIZE", std::string(1, size));
    CHECK(r.config.copy_element_size == static_cast<std::uint32_t>(size - '0'));
    CHECK(r.said == "");
  }
  for (const std::string bad : {"0", "3", "16", "two"}) {
    const Reading r = read_with("TPROF_COPY_ELEMENT_SIZE", bad);
    CHECK(r.config.copy_element_size == 1);
    CHECK(one_line_naming(r.said, "TPROF_COPY_ELEMENT_SIZE", bad));
  }
}

TEST_CASE("TPROF_RING is a power of two from 64") {
  CHECK(read_with("TPROF_RING", "64").config.ring == 64);
  CHECK(read_with("TPROF_RING", "64K").config.ring == 65536);
  CHECK(read_with("TPROF_RING", "4194304").config.ring == 4194304);
  for (const std::string bad : {"0", "32", "65", "8388608", "big"}) {
    const Reading r = read_with("TPROF_RING", bad);
    CHECK(r.config.ring == 16384);
    CHECK(one_line_naming(r.said, "TPROF_RING", bad));
  }
}

TEST_CASE("TPROF_METRICS is a period, or off") {
  const std::map<std::string, std::uint64_t> values = {{"off", 0},
                                                       {"100ms", 100'000'000},
                                                       {"1s", 1'000'000'000},
                                                       {"2500ms", 2'500'000'000},
                                                       {"3600s", 3'600'000'000'000}};
  for (const auto& [text, ns] : values) {
    const Reading r = read_with("TPROF_METRICS", text);
    CHECK(r.config.metrics.every_ns == ns);
    CHECK_FALSE(r.config.metrics.gpus);
    CHECK(r.said == "");
  }
  CHECK(read_with("TPROF_METRICS", "2s,gpus").config.metrics.every_ns == 2'000'000'000);
  CHECK(read_with("TPROF_METRICS", "2s,gpus").config.metrics.gpus);
  for (const std::string bad :
       {"1", "0", "0s", "99ms", "1s,", "1s,gpu", "gpus", ",gpus", "off,gpus", "3601s", "1.5s",
        "1 s", "1m", "s", "-1s", "on", "18446744073709551615s", "18446744073709551616ms"}) {
    const Reading r = read_with("TPROF_METRICS", bad);
    CHECK(r.config.metrics.every_ns == 0);
    CHECK(one_line_naming(r.said, "TPROF_METRICS", bad));
  }
}

TEST_CASE("TPROF_OUTPUT_DIR and TPROF_RUN_ID are taken as they are") {
  CHECK(std::string(read_with("TPROF_OUTPUT_DIR", "/data/%j/%h").config.output_dir) ==
        "/data/%j/%h");
  CHECK(std::string(read_with("TPROF_RUN_ID", "run \"7\"").config.run_id) == "run \"7\"");
  CHECK(std::string(read_with("TPROF_RUN_ID", std::string(500, 'x')).config.run_id) ==
        std::string(127, 'x'));
}

TEST_CASE("TPROF_DISABLE is whatever does not say no") {
  const auto disabled = [](const std::string& value) {
    const Environment environment(Variables{{"TPROF_DISABLE", value}});
    return disabled_by_environment();
  };
  for (const std::string no : {"", "0", "off", "no", "false"}) CHECK_FALSE(disabled(no));
  for (const std::string yes : {"1", "on", "yes", "true", "please"}) CHECK(disabled(yes));
}

TEST_CASE("a long bad value is cut, and is still one line") {
  const Reading r = read_with("TPROF_EVENTS", std::string(5000, 'x'));
  CHECK(r.said.size() <= 512);
  CHECK(r.said.back() == '\n');
}

TEST_CASE("a complaint keeps errno") {
  errno = 77;
  complaints_of([] { complain(Trouble::write, "one", "two", "three"); });
  CHECK(errno == 77);
}

TEST_CASE("TPROF_RANKS=all is what it is without a value") {
  const Reading r = read_with("TPROF_RANKS", "all");
  CHECK(r.config.ranks.all);
  CHECK(r.said == "");
}

TEST_CASE("every default is a value that its setting accepts") {
  for (const SettingInfo& s : kSettings) CHECK(s.accepts(s.fallback));
}

TEST_CASE("a name that looks like a setting's is unknown, but those of our scripts") {
  CHECK(is_unknown_setting("TPROF_OUPUT_DIR"));
  CHECK(is_unknown_setting("TPROF_"));
  for (const SettingInfo& s : kSettings) CHECK_FALSE(is_unknown_setting(s.name));
  CHECK_FALSE(is_unknown_setting("TPROF_BUILD"));
  CHECK_FALSE(is_unknown_setting("PATH"));
}
