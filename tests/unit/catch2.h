// Includes Catch2 3, or an older 2, whose name for a text matcher means another one in 3.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
inline auto has_text(const std::string& text) {
  return Catch::Matchers::ContainsSubstring(text);
}
#else
#include <catch2/catch.hpp>
inline auto has_text(const std::string& text) {
  return Catch::Matchers::Contains(text);
}
#endif
