// Text as rank files have it, made fast.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>

namespace tprof::test {

class Text {
 public:
  Text& operator<<(std::string_view s) {
    bytes.append(s);
    return *this;
  }
  Text& operator<<(char c) {
    bytes += c;
    return *this;
  }
  template <typename Integer>
  requires std::is_integral_v<Integer> Text& operator<<(Integer n) {
    char digits[24];
    bytes.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
    return *this;
  }
  Text& micros(std::uint64_t ns) {
    *this << ns / 1000;
    const auto rest = static_cast<unsigned>(ns % 1000);
    const char decimals[] = {'.', static_cast<char>('0' + rest / 100),
                             static_cast<char>('0' + rest / 10 % 10),
                             static_cast<char>('0' + rest % 10)};
    bytes.append(decimals, sizeof decimals);
    return *this;
  }
  Text& hex(std::uint64_t v) {
    for (int shift = 60; shift >= 0; shift -= 4) bytes += "0123456789abcdef"[v >> shift & 15];
    return *this;
  }

  std::string bytes;
};

// Writes the file of a rank, or ends the program.
inline void save(const std::string& folder, int rank, std::string_view text) {
  char name[32];
  std::snprintf(name, sizeof name, "/rank-%05d.json", rank);
  const std::string path = folder + name;
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file) != text.size() ||
      std::fclose(file) != 0) {
    std::perror(path.c_str());
    std::exit(1);
  }
}

}  // namespace tprof::test
