// Text without the heap, in a growing or in a fixed buffer: usable inside the traced process.
#pragma once

#include <algorithm>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "interpose/base/pages.h"

namespace tprof {

// std::string_view::substr can throw, which would need libstdc++ in the traced process.
constexpr std::string_view prefix(std::string_view s, std::size_t n) {
  return {s.data(), std::min(n, s.size())};
}
constexpr std::string_view without_prefix(std::string_view s, std::size_t n) {
  const std::size_t skip = std::min(n, s.size());
  return {s.data() + skip, s.size() - skip};
}
constexpr std::string_view file_name(std::string_view path) {
  return without_prefix(path, path.rfind('/') + 1);
}
// Calls f(item) for each item of a comma-separated list; false if one is empty or f returns false.
template <typename F>
bool each_item(std::string_view list, F&& f) {
  for (;;) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma == 0 || !f(prefix(list, comma))) return false;
    if (comma == list.size()) return true;
    list.remove_prefix(comma + 1);
  }
}
// Returns false unless the whole text is a number that fits in T.
template <typename T>
bool parse_number(std::string_view text, T& number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end;
}
// Reads a field that may be full, without a NUL.
template <std::size_t N>
std::string_view bounded_text(const char (&text)[N]) {
  return {text, strnlen(text, N)};
}

// Text in the caller's buffer, always a C string. Text that does not fit is cut.
class FixedText {
 public:
  FixedText(char* to, std::size_t size) : to_(to), room_(size - 1) { to_[0] = '\0'; }
  template <std::size_t N>
  explicit FixedText(char (&to)[N]) : FixedText(to, N) {}

  std::string_view view() const { return {to_, size_}; }
  std::size_t size() const { return size_; }

  FixedText& operator<<(std::string_view s) {
    s = prefix(s, room_ - size_);
    if (!s.empty()) std::memcpy(to_ + size_, s.data(), s.size());  // an empty text may be null
    size_ += s.size();
    to_[size_] = '\0';
    return *this;
  }
  // Padded with zeros to `width` digits.
  FixedText& number(std::int64_t v, int width = 0) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, v).ptr;
    for (auto n = static_cast<int>(end - digits); n < width; ++n) *this << "0";
    return *this << std::string_view(digits, static_cast<std::size_t>(end - digits));
  }

 private:
  char* to_;
  std::size_t room_;
  std::size_t size_ = 0;
};

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view from) {
  FixedText(to) << from;
}

// The separator that stands before each element of a list.
class Comma {
 public:
  std::string_view next() {
    const bool first = first_;
    first_ = false;
    return first ? "" : ",";
  }

 private:
  bool first_ = true;
};

// When memory runs out it takes no more text, and failed() is true.
class Text {
 public:
  std::string_view view() const { return {bytes_.data(), bytes_.size()}; }
  const char* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  bool failed() const { return bytes_.failed(); }
  void fail() { bytes_.fail(); }
  void clear() { bytes_.clear(); }
  void cut(std::size_t size) { bytes_.cut(size); }

  Text& operator<<(std::string_view s) {
    bytes_.append(s.data(), s.size());
    return *this;
  }
  Text& operator<<(const char* s) { return *this << std::string_view(s); }
  Text& operator<<(char c) { return *this << std::string_view(&c, 1); }
  Text& operator<<(std::uint64_t v) { return number(v); }
  Text& operator<<(std::int64_t v) { return number(v); }
  Text& operator<<(std::uint32_t v) { return number(std::uint64_t{v}); }
  Text& operator<<(std::int32_t v) { return number(std::int64_t{v}); }

  // Writes null if the value is not known.
  template <typename T>
  Text& number_or_null(bool known, T v) {
    return known ? *this << v : *this << "null";
  }
  Text& string_or_null(const char* s) {
    return s != nullptr && *s != '\0' ? string(s) : *this << "null";
  }
  // The last `digits` hexadecimal digits.
  Text& hex(std::uint64_t v, int digits) {
    while (digits-- != 0) *this << "0123456789abcdef"[v >> 4 * digits & 15];
    return *this;
  }
  // A string of 16 hexadecimal digits; null for 0, which means unknown.
  Text& hex16(std::uint64_t v) { return (*this << '"').hex(v, 16) << '"'; }
  Text& hex16_or_null(std::uint64_t v) { return v != 0 ? hex16(v) : *this << "null"; }
  Text& pointer(std::uint64_t v) {
    char digits[18] = {'0', 'x'};
    const auto end = std::to_chars(digits + 2, digits + sizeof digits, v, 16).ptr;
    return *this << std::string_view(digits, static_cast<std::size_t>(end - digits));
  }
  // Nanoseconds as microseconds with three decimals, from integers (a double loses them).
  Text& micros(std::uint64_t ns) {
    const auto rest = static_cast<std::uint32_t>(ns % 1000);
    const char decimals[4] = {'.', static_cast<char>('0' + rest / 100),
                              static_cast<char>('0' + rest / 10 % 10),
                              static_cast<char>('0' + rest % 10)};
    return *this << ns / 1000 << std::string_view(decimals, sizeof decimals);
  }
  // A JSON string with its quotes. Bytes above 0x7f that are not UTF-8 become U+FFFD.
  Text& string(std::string_view s) {
    *this << '"';
    while (!s.empty()) s.remove_prefix(character(s));
    return *this << '"';
  }

 private:
  template <typename T>
  Text& number(T v) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, v).ptr;
    return *this << std::string_view(digits, static_cast<std::size_t>(end - digits));
  }

  // Appends the first character of `s`, escaped for JSON; returns its number of bytes.
  std::size_t character(std::string_view s) {
    const auto c = static_cast<unsigned char>(s[0]);
    if (c == '"' || c == '\\') {
      *this << '\\' << s[0];
    } else if (c < 0x20 || c == 0x7f) {
      (*this << "\\u00").hex(c, 2);
    } else if (c < 0x80) {
      *this << s[0];
    } else {
      const std::size_t length = utf8_length(s);
      if (length == 0) {
        *this << "\\ufffd";
        return 1;
      }
      *this << prefix(s, length);
      return length;
    }
    return 1;
  }

  // Bytes of the well-formed sequence that `s` begins with (RFC 3629), 0 if there is none.
  static std::size_t utf8_length(std::string_view s) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned char c = at(0);
    const std::size_t length = c >= 0xf0 && c <= 0xf4  ? 4
                               : c >= 0xe0 && c < 0xf0 ? 3
                               : c >= 0xc2 && c < 0xe0 ? 2
                                                       : 0;
    if (length == 0 || s.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
      if ((at(i) & 0xc0) != 0x80) return 0;
    }
    const bool overlong = (c == 0xe0 && at(1) < 0xa0) || (c == 0xf0 && at(1) < 0x90);
    const bool surrogate = c == 0xed && at(1) > 0x9f;
    const bool beyond = c == 0xf4 && at(1) > 0x8f;
    return overlong || surrogate || beyond ? 0 : length;
  }

  Pages<char> bytes_;
};

// A real number in JSON, independent of the decimal point of the program's locale.
// Writes as many digits as are needed to read the same number back; null for NaN and infinities.
inline Text& put_real(Text& out, double v) {
  if (!std::isfinite(v)) return out << "null";
  // This locale is glibc's own: nothing is allocated.
  const locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", nullptr));
  char digits[32];
  for (int precision = 15; precision <= 17; ++precision) {
    std::snprintf(digits, sizeof digits, "%.*g", precision, v);
    if (std::strtod(digits, nullptr) == v) break;
  }
  uselocale(before);
  return out << digits;
}

}  // namespace tprof
