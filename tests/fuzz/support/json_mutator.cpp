// Mutates text of JSON lines for libFuzzer: replaces a value by one that is often handled wrongly,
// or repeats, drops or moves a line. Random changes of bytes alone seldom leave JSON.
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/fuzz.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed);

namespace {

constexpr std::array<std::string_view, 29> kValues = {"0",
                                                      "-1",
                                                      "1",
                                                      "null",
                                                      "true",
                                                      "\"\"",
                                                      "[]",
                                                      "{}",
                                                      "0.5",
                                                      "1e999",
                                                      "-0",
                                                      "1e3",
                                                      "2147483648",
                                                      "4294967295",
                                                      "9223372036854775807",
                                                      "-9223372036854775808",
                                                      "9223372036854775808",
                                                      "18446744073709551615",
                                                      "18446744073709551616",
                                                      "1152921504606846976",
                                                      "[[[[[[[[]]]]]]]]",
                                                      "\"\\u001b[31m\"",
                                                      "\"\\u202e\"",
                                                      "\"\xc2\x9b\"",
                                                      "\"direct\"",
                                                      "\"ALLGATHER\"",
                                                      "63",
                                                      "64",
                                                      "\"5be1a0c7d2e3f405\""};

struct Span {
  std::size_t begin;
  std::size_t end;
};

std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
  return std::min(at + 1, text.size());
}

// Finds the scalars after a colon, comma or bracket.
std::vector<Span> values_of(std::string_view text) {
  std::vector<Span> found;
  for (std::size_t i = 0; i + 1 < text.size();) {
    const bool value = text[i] == ':' || text[i] == '[' || text[i] == ',';
    ++i;
    if (text[i] == '"') {
      const std::size_t end = end_of_string(text, i);
      if (value) found.push_back({i, end});
      i = end;
    } else if (value && text[i] != '{' && text[i] != '[' && text[i] != '\n') {
      const std::size_t end = std::min(text.find_first_of(",]}\n", i), text.size());
      found.push_back({i, end});
      i = end;
    }
  }
  return found;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

}  // namespace

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max,
                                    unsigned seed) {
  std::minstd_rand random(seed);
  const auto pick = [&](std::size_t n) { return random() % n; };
  const std::size_t how = pick(8);
  std::string text(tprof::fuzz::text_of(data, size));
  if (how < 4) {
    const std::vector<Span> values = values_of(text);
    if (values.empty()) return LLVMFuzzerMutate(data, size, max);
    const Span at = values[pick(values.size())];
    text.replace(at.begin, at.end - at.begin, kValues[pick(kValues.size())]);
  } else if (how < 7) {
    std::vector<std::string> lines = lines_of(text);
    if (lines.empty()) return LLVMFuzzerMutate(data, size, max);
    const std::size_t from = pick(lines.size());
    std::string line = lines[from];
    if (how != 4) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(from));
    if (how != 5) {
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(pick(lines.size() + 1)), line);
    }
    text.clear();
    for (const std::string& l : lines) text += l;
  } else {
    return LLVMFuzzerMutate(data, size, max);
  }
  size = std::min(text.size(), max);
  std::memcpy(data, text.data(), size);
  return size;
}
