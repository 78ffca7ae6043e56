// base/text.h against nlohmann::json and printf.
#include <bit>
#include <climits>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "catch2.h"
#include "interpose/base/text.h"

using namespace tprof;

namespace {

std::string as_string(std::string_view s) {
  Text text;
  text.string(s);
  return std::string(text.view());
}

template <typename... Values>
std::string printed(const char* format, Values... values) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

void append_utf8(std::string& s, std::uint32_t c) {
  const auto byte = [&](std::uint32_t b) { s += static_cast<char>(b); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) return byte(0xc0 | c >> 6), byte(0x80 | (c & 63));
  if (c < 0x10000) return byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63));
  byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63));
  byte(0x80 | (c & 63));
}

}  // namespace

TEST_CASE("every Unicode character survives being written as JSON") {
  std::string all;
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    if (c < 0xd800 || c > 0xdfff) append_utf8(all, c);
  }
  CHECK(nlohmann::json::parse(as_string(all)).get<std::string>() == all);
}

TEST_CASE("quotes, backslashes and control characters are escaped") {
  CHECK(as_string("a\"b\\c\n\x1f\x7f") == R"("a\"b\\c\u000a\u001f\u007f")");
  CHECK(as_string("") == R"("")");
}

TEST_CASE("bytes that are not UTF-8 become U+FFFD and never break the line") {
  CHECK(as_string("\xff") == R"("\ufffd")");
  CHECK(as_string("\xc0\x80") == R"("\ufffd\ufffd")");                     // overlong
  CHECK(as_string("\xed\xa0\x80") == R"("\ufffd\ufffd\ufffd")");           // surrogate
  CHECK(as_string("\xf4\x90\x80\x80").find('\xf4') == std::string::npos);  // beyond U+10FFFF
  CHECK(as_string("caf\xc3") == R"("caf\ufffd")");                         // cut within a character
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 12, '\0');
    for (char& b : bytes) b = static_cast<char>(random());
    REQUIRE(nlohmann::json::accept(as_string(bytes)));
  }
}

TEST_CASE("numbers are printed as printf prints them") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t v = i == 0 ? 0 : i == 1 ? UINT64_MAX : random() >> (random() % 64);
    const auto s = static_cast<std::int64_t>(v);
    Text text;
    text << v << ' ' << s << ' ' << static_cast<std::int32_t>(s) << ' ';
    text.hex16(v) << ' ';
    text.pointer(v);
    REQUIRE(text.view() == printed("%llu", static_cast<unsigned long long>(v)) +
                               printed(" %lld", static_cast<long long>(s)) +
                               printed(" %d", static_cast<std::int32_t>(s)) +
                               printed(" \"%016llx\"", static_cast<unsigned long long>(v)) +
                               printed(" 0x%llx", static_cast<unsigned long long>(v)));
  }
}

TEST_CASE("a real number is read again as the same, and is null where JSON has none") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    const auto v = std::bit_cast<double>(random());
    Text text;
    const auto read = nlohmann::json::parse(put_real(text, v).view());
    CHECK((std::isfinite(v) ? read.get<double>() == v : read.is_null()));
  }
  for (const auto& [v, as] : {std::pair(0.1, "0.1"), {2.0, "2"}, {-1e300, "-1e+300"}, {0.0, "0"}}) {
    Text text;
    CHECK(put_real(text, v).view() == as);
  }
}

TEST_CASE("microseconds keep every nanosecond of 64 bits") {
  for (const std::uint64_t ns :
       {0ULL, 1ULL, 999ULL, 1000ULL, 1042117ULL, 1763683200000000001ULL, 18446744073709551615ULL}) {
    Text text;
    text.micros(ns);
    CHECK(text.view() == printed("%llu.%03llu", ns / 1000, ns % 1000));
  }
}
