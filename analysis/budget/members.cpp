#include "budget/members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "diagnose/names.h"
#include "text/text.h"

namespace tprof::budget {
namespace {

constexpr std::size_t kMostNames = 4;

}  // namespace

Members::Members(const diagnose::Processes& all) : numbers(diagnose::ranks_of(all)) {
  for (const read::Process* p : all) {
    if (!p->header.rank) others.push_back(diagnose::name_of(*p));
  }
  std::ranges::sort(others);
}

void Members::add(const Members& more) {
  numbers.add(more.numbers);
  const auto here = static_cast<std::ptrdiff_t>(others.size());
  others.insert(others.end(), more.others.begin(), more.others.end());
  std::ranges::inplace_merge(others, others.begin() + here);
}

std::string Members::list() const {
  std::string all = numbers.str();
  if (others.empty()) return all;
  if (!all.empty()) all += ", ";
  const std::size_t named = std::min(others.size(), kMostNames);
  all += fmt::format("{}", fmt::join(std::span(others).first(named), ", "));
  if (named == others.size()) return all;
  return all + fmt::format(" and {} more processes", text::thousands(others.size() - named));
}

std::string Members::names() const {
  if (numbers.empty()) return list();
  return (numbers.size() == 1 ? "rank " : "ranks ") + list();
}

}  // namespace tprof::budget
