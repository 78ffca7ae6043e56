// The words of findings. Each sentence has a row in words_table.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "check/finding.h"

namespace tprof::report {

// In a text, {name} is a value; {name:,} groups its digits; {name:is} is "is", "are", "was" or
// "were", {name:rank} no more than the rank; {name:/} and {name:;} have that between the parts of a
// list, instead of a comma, and {name:and} has "and" before the last; {name:advice} is its advice;
// {name|else} has a word for a value that is absent; {name?a|b} is `a` if the value is true, 1 or a
// text, else `b`. [A part in brackets] goes if a value in it is absent. A plain {name} elsewhere
// that a finding does not have shows as it is.
struct Words {
  check::Say say;
  std::string_view text;
  std::string_view advice = "";  // with the values of the text
};

std::span<const Words> all_words();

std::string filled(std::string_view text, const check::Values& values);
const Words& words_of(check::Say say);
std::string sentence(const check::Fact& fact);
std::string advice(const check::Fact& fact);

}  // namespace tprof::report
