// Tells which opt-ins let a kind of library or tool be seen.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "diagnose/coverage.h"

namespace tprof::diagnose {
namespace {

// Opt-ins, as bits.
constexpr unsigned kDlsym = 1;
constexpr unsigned kDriver = 2;

struct SeenWith {
  Kind kind;
  unsigned opt_ins;
  bool fully = false;  // with them nothing is left to say
};
constexpr SeenWith kSeenWith[] = {
    {Kind::dali, kDriver, true},    {Kind::jax, kDlsym | kDriver, true},
    {Kind::cupy, kDriver, true},    {Kind::second_nccl, kDlsym},
    {Kind::second_cudart, kDlsym},  {Kind::uncalled_cudart, kDlsym},
    {Kind::static_cudart, kDriver}, {Kind::dlsym, kDlsym, true},
    {Kind::comm_unknown, kDlsym},
};

// "A=1 and B=1", without settings that are in force everywhere.
std::string not_set(unsigned opt_ins, const std::vector<const Variables*>& all_set) {
  std::string list;
  for (const auto& [bit, setting] :
       {std::pair(kDlsym, Setting::dlsym), std::pair(kDriver, Setting::driver)}) {
    const auto set_in = [s = setting](const Variables* set) { return in_force(*set, s); };
    if ((opt_ins & bit) == 0 || std::ranges::all_of(all_set, set_in)) continue;
    list += fmt::format("{}{}=1", list.empty() ? "" : " and ", info(setting).name);
  }
  return list;
}

}  // namespace

bool in_force(const Variables& set, Setting opt_in) {
  const auto found = set.find(std::string(info(opt_in).name));
  return found != set.end() && !is_off(found->second);
}

std::optional<Limit> limit_of(std::string_view note, const std::vector<const Variables*>& all_set) {
  const auto kind = kind_of_note(note);
  if (!kind) return std::nullopt;
  const auto* seen = std::ranges::find(kSeenWith, *kind, &SeenWith::kind);
  if (seen == std::end(kSeenWith)) return Limit{*kind, ""};
  Limit limit{*kind, not_set(seen->opt_ins, all_set)};
  if (seen->fully && limit.set.empty()) return std::nullopt;
  return limit;
}

}  // namespace tprof::diagnose
