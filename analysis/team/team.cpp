#include "team/team.h"

#include <stdexcept>

namespace tprof::team {

void ask(Team& team, std::size_t of, Ask what, std::string_view details) {
  team.send(of, static_cast<char>(what) + std::string(details));
}

std::string answer(Team& team, std::size_t of) {
  std::string said = team.receive(of);
  if (!said.starts_with('!')) return said.substr(1);
  throw std::runtime_error("process " + std::to_string(of) + " of " + std::to_string(team.size()) +
                           ": " + said.substr(1));
}

void end(Team& team, int code) {
  for (std::size_t i = 1; i < team.size(); ++i) {
    try {
      ask(team, i, Ask::end, std::to_string(code));
    } catch (const std::exception&) {
      return;
    }
  }
}

}  // namespace tprof::team
