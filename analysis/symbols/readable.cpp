#include "symbols/frames.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace tprof::symbols {
namespace {

// Parentheses that are no arguments.
constexpr std::string_view kOthers[] = {"(anonymous namespace)", "operator()"};

std::size_t arguments_at(std::string_view name) {
  int templates = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    bool skipped = false;
    for (const std::string_view other : kOthers) {
      if (name.substr(i).starts_with(other)) {
        i += other.size() - 1;
        skipped = true;
        break;
      }
    }
    if (skipped) continue;
    if (name.substr(i).starts_with("operator")) {  // an operator may be <, >> or ->
      i = std::min(name.find_first_of("( ", i), name.size()) - 1;
    } else if (name[i] == '<') {
      ++templates;
    } else if (name[i] == '>') {
      --templates;
    } else if (name[i] == '(' && templates == 0) {
      return i;
    }
  }
  return name.size();
}

}  // namespace

std::string readable(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // "i" would be taken for the type
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0) return symbol;
  const std::string_view whole = name.get();
  return std::string(whole.substr(0, arguments_at(whole)));
}

}  // namespace tprof::symbols
