// The words of findings: one row of words_table.cpp per sentence.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "check/finding.h"

namespace tprof::report {

// In a text, {name} is a value. {name:,} groups digits; {name:is} gives "is", "are", "was" or
// "were"; {name:rank} gives just the rank; {name:/} and {name:;} separate a list by these instead
// of commas, {name:and} adds "and" before the last item; {name:advice} gives its advice;
// {name|else} replaces an absent value; {name?a|b} gives `a` if the value is true, 1 or a text,
// else `b`. [A part in brackets] is dropped if a value in it is absent. Elsewhere an absent {name}
// is printed literally.
struct Words {
  check::Say say;
  std::string_view text;
  std::string_view advice = "";  // may use the text's values
};

std::span<const Words> all_words();

std::string filled(std::string_view text, const check::Values& values);
const Words& words_of(check::Say say);
std::string sentence(const check::Fact& fact);
std::string advice(const check::Fact& fact);

}  // namespace tprof::report
