#include "report/views.h"

#include <algorithm>

#include "report/figures.h"

namespace tprof::report {
namespace {

using stats::CommSummary;

constexpr std::size_t kCommsShown = 20;

bool guessed(const CommSummary& c) {
  return !c.role_sure && !c.role.empty();
}

// "588 to 589" where ranks differ, as `tprof check` says it.
std::string collectives_text(const CommSummary& c) {
  const std::string most = text::thousands(c.collectives);
  const std::uint64_t fewest = c.fewest.value_or(c.collectives);
  return fewest == c.collectives ? most : text::thousands(fewest) + " to " + most;
}

std::vector<Column<CommSummary>> comm_columns() {
  using Row = CommSummary;
  return {
      {"communicator", "id", Unit::text, [](const Row& c) { return std::string(c.id); }},
      {"name", "name", Unit::name, [](const Row& c) { return or_unknown(c.name); }},
      {"role", nullptr, Unit::name, [](const Row& c) { return stats::role_text(c); }, Show::if_any},
      {nullptr, "role", Unit::name, [](const Row& c) { return or_unknown(c.role); }},
      {nullptr, "role_guessed", Unit::text, [](const Row& c) { return Json(c.role_guessed); }},
      {"size", "nranks", Unit::number, [](const Row& c) { return c.nranks; }},
      {"ranks", nullptr, Unit::text, [](const Row& c) { return text::ranges(c.ranks); }},
      {nullptr, "ranks", Unit::text, [](const Row& c) { return Json(c.ranks); }},
      {"collectives", nullptr, Unit::right_text, collectives_text, Show::if_room},
      {nullptr, "collectives", Unit::count, [](const Row& c) { return c.collectives; }},
      figure<Row>("calls", "calls", Unit::count, &read::Amounts::calls),
      figure<Row>("bytes", "bytes", Unit::bytes, &read::Amounts::bytes),
      {"split from", "parent", Unit::name, [](const Row& c) { return or_unknown(c.parent); },
       Show::if_room}};
}

}  // namespace

Section section_of(const std::vector<CommSummary>& comms, For who) {
  const auto shown = comms.begin() + std::min(std::ssize(comms), std::ptrdiff_t{kCommsShown});
  const char* guess = "  role?: a guess, from what was sent in which pass.\n";
  return {.title = "Communicators",
          .table = sheet(comm_columns(), comms, who),
          .notes = std::any_of(comms.begin(), shown, guessed) ? guess : "",
          .at = "",
          .room = {.rows = kCommsShown}};
}

}  // namespace tprof::report
