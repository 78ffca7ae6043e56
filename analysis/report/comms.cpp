#include "report/views.h"

#include <algorithm>

#include "report/figures.h"

namespace tprof::report {
namespace {

using stats::CommSummary;

constexpr std::ptrdiff_t kCommsShown = 20;
constexpr const char* kGuess = "role?: a guess, from what was sent in which pass.";

// "588 to 589" where ranks differ, as `tprof check` says it.
std::string collectives_text(const CommSummary& c) {
  const std::string most = text::thousands(c.collectives);
  const std::uint64_t fewest = c.fewest.value_or(c.collectives);
  return fewest == c.collectives ? most : text::thousands(fewest) + " to " + most;
}

std::vector<Column<CommSummary>> comm_columns() {
  std::vector<Column<CommSummary>> all = {
      {"communicator", "id", Unit::text, &CommSummary::id},
      {"name", "name", Unit::name, &CommSummary::name},
      {"role", nullptr, Unit::name, stats::role_text, Show::if_any},
      {nullptr, "role", Unit::name, &CommSummary::role},
      {nullptr, "role_guessed", Unit::text, &CommSummary::role_guessed},
      {"size", "nranks", Unit::number, &CommSummary::nranks},
      {"ranks", "ranks", Unit::text, &CommSummary::ranks},
      {"collectives", nullptr, Unit::right_text, collectives_text, Show::if_room},
      {nullptr, "collectives", Unit::count, &CommSummary::collectives}};
  append(all, Figures{{"calls", "calls", Unit::count, &read::Amounts::calls},
                      {"bytes", "bytes", Unit::bytes, &read::Amounts::bytes}});
  all.push_back({"split from", "parent", Unit::name, &CommSummary::parent, Show::if_room});
  return all;
}

}  // namespace

Section section_of(const std::vector<CommSummary>& comms, For who) {
  const bool guessed =
      std::any_of(comms.begin(), comms.begin() + std::min(std::ssize(comms), kCommsShown),
                  [](const CommSummary& c) { return !c.role_sure && !c.role.empty(); });
  return {.title = "Communicators",
          .table = sheet(comm_columns(), comms, who),
          .notes = guessed ? Notes{kGuess} : Notes(),
          .at = "",
          .room = {.rows = kCommsShown}};
}

}  // namespace tprof::report
