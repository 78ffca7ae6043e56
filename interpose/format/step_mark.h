// The marks of a step (TPROF_STEP), and the names that programs give them. The lines' writer finds
// steps by them, and so does the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"

namespace tprof {

// automatic: NVTX ranges of the names below. range: each NVTX range of this name is a step, or each
// mark of this name begins one. call: each call of this function with this count ends a step.
// period: nothing marks steps; they are found from repeating calls.
enum class StepBy : std::uint8_t { off, automatic, range, call, period };

struct StepMark {
  StepBy by = StepBy::off;
  std::string_view name{};  // of the range or function
  std::uint64_t count = 0;  // the API's argument, or a copy's bytes; 0: any
};

inline constexpr std::size_t kMaxStepMark = 127;  // bytes of the setting

// The quota of step lines is this part of that of event lines: 16 MiB by default.
inline constexpr std::uint64_t kStepQuotaDivisor = 4;

// Parses "off", "auto", "period", "nvtx:NAME", "call:ncclReduceScatter" or
// "call:ncclReduceScatter@128".
inline bool parse_step_mark(std::string_view text, StepMark& mark) {
  constexpr std::string_view kRange = "nvtx:";
  constexpr std::string_view kCall = "call:";
  mark = {};
  if (text.size() > kMaxStepMark) return false;
  if (text == "off") return true;
  if (text == "auto" || text == "period") {
    mark.by = text == "auto" ? StepBy::automatic : StepBy::period;
    return true;
  }
  if (text.starts_with(kRange)) {
    text.remove_prefix(kRange.size());
    mark = {StepBy::range, text, 0};
    return !mark.name.empty();
  }
  if (!text.starts_with(kCall)) return false;
  text.remove_prefix(kCall.size());
  mark = {StepBy::call, text, 0};
  const std::size_t at = mark.name.find('@');
  if (at != std::string_view::npos) {
    if (!parse_number(without_prefix(mark.name, at + 1), mark.count) || mark.count == 0)
      return false;
    mark.name = prefix(mark.name, at);
  }
  return mark.name.starts_with("nccl") || mark.name.starts_with("cu");
}

// Limits for finding steps without marks: they tell gradients and batches of data from the rest.
inline constexpr std::uint64_t kSmallCopy = 8;         // times smaller than the largest: no batch
inline constexpr std::uint64_t kSmallReduction = 256;  // times smaller than the largest: a norm
inline constexpr std::uint64_t kScalarBytes = 64;      // less is a flag or a scale, not data

// The names in lower case, without separators. They need a number: "step" alone may be the
// optimizer's.
inline constexpr std::string_view kStepNames[] = {
    "profilerstep", "step",         "iteration",  "iter",
    "trainstep",    "trainingstep", "globalstep", "trainingiteration"};

// Splits off the number at the end of a text. Returns false if there is none.
inline bool split_number(std::string_view text, std::string_view& before, std::int64_t& number) {
  std::size_t digits = text.size();
  while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
  if (!parse_number(without_prefix(text, digits), number)) return false;
  before = prefix(text, digits);
  return true;
}

// Returns the one of kStepNames that a range has, and its number: "ProfilerStep#7", "step 7",
// "iteration_7". Empty: none.
inline std::string_view step_name(std::string_view text, std::int64_t& number) {
  std::string_view before;
  if (!split_number(text, before, number)) return {};
  for (const std::string_view name : kStepNames) {
    std::size_t n = 0;
    bool same = true;
    for (const char c : before) {
      if (std::string_view(" _-#:=/").find(c) != std::string_view::npos) continue;
      const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      same = same && n < name.size() && name[n] == small;
      ++n;
    }
    if (same && n == name.size()) return name;
  }
  return {};
}

// True if a range of this text is a step by `mark`. The number is -1 if the text has none.
inline bool is_step(const StepMark& mark, std::string_view text, std::int64_t& number) {
  if (mark.by == StepBy::automatic) return !step_name(text, number).empty();
  if (mark.by != StepBy::range) return false;
  number = -1;
  if (text == mark.name) return true;
  std::string_view before;
  return split_number(text, before, number) && before == mark.name;
}

}  // namespace tprof
