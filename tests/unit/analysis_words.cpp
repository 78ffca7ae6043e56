// Every sentence of the findings, in one list: `unit_analysis '[.print]'` prints it.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "catch2.h"
#include "report/words.h"

using namespace tprof;

using report::all_words;

namespace {

bool balanced(std::string_view text) {
  // Fields may stand in a part in brackets, and in what a field chooses. Parts do not nest.
  int open = 0;
  bool part = false;
  for (const char c : text) {
    if (c == '{' && ++open > 2) return false;
    if (c == '}' && --open < 0) return false;
    if (c == '[' && part) return false;
    if (c == '[') part = true;
    if (c == ']' && !part) return false;
    if (c == ']') part = false;
  }
  return open == 0 && !part;
}

}  // namespace

// These two say where their ranks stand, in the same words.
static bool has_other_words(check::Say say) {
  using check::Kind;
  return say == check::say(Kind::hang) || say == check::say(Kind::stopped);
}

TEST_CASE("each thing that a finding may say has its words, once") {
  const auto all = all_words();
  for (std::size_t i = 0; i < static_cast<std::size_t>(check::Say::count_); ++i) {
    const auto say = static_cast<check::Say>(i);
    INFO("Say number " << i);
    CHECK(std::ranges::count(all, say, &report::Words::say) == (has_other_words(say) ? 0 : 1));
  }
}

TEST_CASE("the words of findings are sentences with whole fields") {
  for (const report::Words& w : all_words()) {
    for (const std::string_view text : {w.text, w.advice}) {
      INFO(text);
      CHECK(balanced(text));
      CHECK(text.find("  ") == std::string_view::npos);
      CHECK_FALSE(text.ends_with(' '));
      CHECK_FALSE((text.starts_with("Of ") || text.starts_with("What ")));
    }
  }
}

TEST_CASE("a plain value that a finding does not have shows by its name") {
  using check::Fact;
  using check::Say;
  CHECK(report::sentence(Fact{Say::more}) == "and {more} more");
  CHECK(report::sentence(Fact{Say::more, {{"more", 3}}}) == "and 3 more");
  const Fact absent{Say::range_named, {{"name", "step"}, {"domain", std::nullopt}}};
  CHECK(report::sentence(absent) == "\"step\"");
  CHECK(report::sentence(Fact{Say::range_named, {{"name", "step"}}}) == "\"step\"");
}

TEST_CASE("all words of findings", "[.print]") {
  for (const report::Words& w : all_words()) {
    std::printf("%.*s\n", static_cast<int>(w.text.size()), w.text.data());
    if (!w.advice.empty()) {
      std::printf("    -> %.*s\n", static_cast<int>(w.advice.size()), w.advice.data());
    }
  }
}
