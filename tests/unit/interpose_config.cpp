// session/config.h: each setting, and that a bad value costs one line and the default.
#include <algorithm>
#include <sstream>
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

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream all(text);
  for (std::string word; std::getline(all, word, '|');) words.push_back(word);
  return words;
}

}  // namespace

TEST_CASE("a good value is taken, and a bad one costs a line and the default") {
  const struct {
    std::string name;
    std::uint64_t (*value_of)(const Config&);
    std::string fallback, good, bad;
  } settings[] = {
      {"TPROF_REDACT", [](const Config& c) { return std::uint64_t{c.redact}; }, "1",
       "off=0|on=1|0=0", "never"},
      {"TPROF_QUOTA", [](const Config& c) { return c.quota; }, "67108864",
       "0=0|1=1|4096=4096|64KiB=65536|64K=65536|3M=3145728|2GB=2147483648|1T=1099511627776|"
       "100B=100|18446744073709551615=18446744073709551615",
       "much|-1|1.5M|64 MiB|1KK|18446744073709551616|99999999999T|M| 1"},
      {"TPROF_EVENTS",
       [](const Config& c) -> std::uint64_t {
         return c.events == EventLines::off ? 0 : c.events == EventLines::all ? 2 : 1;
       },
       "1", "off=0|on=1|all=2", "ON|1|offf"},
      {"TPROF_MEMORY", [](const Config& c) { return std::uint64_t{c.memory}; }, "0",
       "0=0|off=0|no=0|false=0|1=1|on=1|yes=1|true=1", "2|01|-1|ON|please"},
      {"TPROF_COPY_ELEMENT_SIZE",
       [](const Config& c) { return std::uint64_t{c.copy_element_size}; }, "1", "1=1|2=2|4=4|8=8",
       "0|3|16|two"},
      {"TPROF_RING", [](const Config& c) { return std::uint64_t{c.ring}; }, "16384",
       "64=64|64K=65536|4194304=4194304", "0|32|65|8388608|big"},
      // An odd number asks for GPUs.
      {"TPROF_METRICS",
       [](const Config& c) { return c.metrics.every_ns + std::uint64_t{c.metrics.gpus}; }, "0",
       "off=0|100ms=100000000|1s=1000000000|2500ms=2500000000|3600s=3600000000000|"
       "2s,gpus=2000000001",
       "1|0|0s|99ms|1s,|1s,gpu|gpus|,gpus|off,gpus|3601s|1.5s|1 s|1m|s|-1s|on|"
       "18446744073709551615s|18446744073709551616ms"},
  };
  for (const auto& s : settings) {
    const auto check = [&](const std::string& text, const std::string& value, bool good) {
      INFO(s.name << '=' << text);
      const Reading r = read_with(s.name, text);
      CHECK(std::to_string(s.value_of(r.config)) == value);
      CHECK((good ? r.said.empty() : one_line_naming(r.said, s.name, text)));
    };
    for (const std::string& text : words_of(s.good)) {
      check(text.substr(0, text.find('=')), text.substr(text.find('=') + 1), true);
    }
    for (const std::string& text : words_of(s.bad)) check(text, s.fallback, false);
  }
}

TEST_CASE("TPROF_RANKS lists ranks and ranges") {
  const Reading r = read_with("TPROF_RANKS", "0-7,64,100-101");
  CHECK(r.said == "");
  CHECK_FALSE(r.config.ranks.all);
  for (const std::int64_t rank : {0, 3, 7, 64, 100, 101}) CHECK(r.config.ranks.has(rank));
  for (const std::int64_t rank : {-1, 8, 63, 65, 99, 102}) CHECK_FALSE(r.config.ranks.has(rank));
  for (const std::string& text : words_of("all|a|1-|-3|3-1|1,,2|1,|1 2|1-2-3|0x1")) {
    const Reading all = read_with("TPROF_RANKS", text);
    CHECK(all.config.ranks.all);
    CHECK(std::count(all.said.begin(), all.said.end(), '\n') == (text == "all" ? 0 : 1));
  }
  CHECK(read_with("TPROF_RANKS", std::string(300, '1')).config.ranks.all);
}

TEST_CASE("TPROF_DISABLE is what says yes") {
  const auto disabled = [](const std::string& value) {
    const Environment environment(Variables{{"TPROF_DISABLE", value}});
    return disabled_by_environment();
  };
  for (const std::string no : {"", "0", "off", "no", "false", "2", "please"}) {
    CHECK_FALSE(disabled(no));
  }
  for (const std::string yes : {"1", "on", "yes", "true"}) CHECK(disabled(yes));
}

TEST_CASE("a name that looks like a setting's is unknown, but those of our scripts") {
  CHECK(is_unknown_setting("TPROF_OUPUT_DIR"));
  CHECK(is_unknown_setting("TPROF_"));
  for (const SettingInfo& s : kSettings) CHECK_FALSE(is_unknown_setting(s.name));
  CHECK_FALSE(is_unknown_setting("TPROF_BUILD"));
  CHECK_FALSE(is_unknown_setting("PATH"));
}
