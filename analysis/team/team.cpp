#include "team/team.h"

#include <algorithm>
#include <utility>

#include "team/archive.h"

namespace tprof::team {
namespace {

// Whether a process is still at work, before what it says.
constexpr char kAtWork = 'w';
constexpr char kAtItsEnd = 'e';

// All processes together send so much at a time, as far as an item is not larger.
constexpr std::size_t kRoundBytes = std::size_t{256} << 20;

Team::Ended ended(std::string_view said) {
  Team::Ended e;
  Archive unpack(said);
  unpack(e);
  return e;
}

std::string of_process(std::size_t rank, std::size_t size, const std::string& error) {
  return "process " + std::to_string(rank) + " of " + std::to_string(size) + ": " + error;
}

}  // namespace

std::vector<std::string> Team::all_of(std::string mine) {
  std::vector<std::string> all = exchange(kAtWork + std::move(mine));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty() || all[i][0] == kAtWork) continue;
    over_ = true;
    throw GaveUp(of_process(i, size(), ended(std::string_view(all[i]).substr(1)).error));
  }
  for (std::string& one : all) one.erase(0, 1);
  return all;
}

Team::Ended Team::end(int code, const std::string& error) {
  Ended all{code, {}};
  if (std::exchange(over_, true)) return all;
  Ended mine{code, error};
  Archive pack;
  pack(mine);
  const std::vector<std::string> said = exchange(kAtItsEnd + pack.take());
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i].empty() || said[i][0] == kAtWork) continue;
    const Ended one = ended(std::string_view(said[i]).substr(1));
    all.code = std::max(all.code, one.code);
    if (all.error.empty() && !one.error.empty()) all.error = of_process(i, size(), one.error);
  }
  return all;
}

void share(Team& team, std::size_t n, std::vector<std::string> mine,
           const std::function<void(std::size_t, std::string_view)>& take) {
  const std::size_t room = kRoundBytes / team.size();
  std::vector<std::size_t> taken(team.size());  // of each process
  std::size_t next = 0;
  for (std::size_t done = 0; done < n;) {
    std::vector<std::string> part;
    std::size_t bytes = 0;
    for (; next < mine.size() && (part.empty() || bytes + mine[next].size() <= room); ++next) {
      bytes += mine[next].size();
      part.push_back(std::exchange(mine[next], {}));
    }
    Archive pack;
    pack(part);
    const std::vector<std::string> all = team.all_of(pack.take());
    const std::size_t before = done;
    for (std::size_t p = 0; p < all.size(); ++p) {
      std::vector<std::string> items;
      Archive unpack(all[p]);
      unpack(items);
      for (const std::string& item : items) {
        take(p + taken[p]++ * team.size(), item);
        ++done;
      }
    }
    if (done == before) throw std::runtime_error("the processes of the team see other files");
  }
}

}  // namespace tprof::team
