// Makes one table of the meetings that the processes of a team have read, each of some ranks.
#include <algorithm>
#include <utility>

#include "diagnose/meetings.h"
#include "team/archive.h"

namespace tprof::diagnose {
namespace {

// Parts that all processes together send at a time; a table may have a million, and so many times
// as there are processes.
constexpr std::size_t kPartsOfRound = std::size_t{1} << 20;

// Calls take(bytes) for what each of the others packed.
template <typename Pack, typename Take>
void exchange(team::Team& team, const Pack& pack, const Take& take) {
  team::Archive to;
  pack(to);
  const std::vector<std::string> all = team.all_of(to.take());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == team.rank()) continue;
    team::Archive from(all[i]);
    take(from);
  }
}

}  // namespace

void Meetings::share(team::Team& team) {
  std::uint64_t untimed = untimed_;
  const auto members = [&](team::Archive& archive, auto&& see) {
    for (auto& [id, table] : tables_) {
      for (MetComm::Member& m : table.comm.members) {
        bool has = m.has_lines;
        archive(has);
        see(table.comm, m, has);
      }
    }
  };
  exchange(
      team,
      [&](team::Archive& to) {
        to(untimed);
        members(to, [](MetComm&, MetComm::Member&, bool) {});
      },
      [&](team::Archive& from) {
        std::uint64_t theirs = 0;
        from(theirs);
        untimed_ += theirs;
        members(from, [](MetComm& comm, MetComm::Member& m, bool has) {
          if (!has || std::exchange(m.has_lines, true)) return;
          ++comm.expected[m.host];
        });
      });

  std::vector<std::pair<Table*, std::size_t>> blocks;
  for (auto& [id, table] : tables_) {
    for (std::size_t b = 0; b < table.blocks.size(); ++b) blocks.emplace_back(&table, b);
  }
  const auto parts_of = [](const Table& table) { return table.block * table.comm.hosts.size(); };
  for (std::size_t from = 0; from < blocks.size();) {
    std::size_t to = from;
    for (std::size_t parts = 0; to < blocks.size() && parts < kPartsOfRound / team.size(); ++to) {
      parts += parts_of(*blocks[to].first);
    }
    const auto each = [&](const auto& see) {
      for (std::size_t i = from; i < to; ++i) {
        see(blocks[i].first->blocks[blocks[i].second], parts_of(*blocks[i].first));
      }
    };
    exchange(
        team,
        [&](team::Archive& archive) {
          each([&](auto& block, std::size_t parts) {
            bool there = block != nullptr;
            archive(there);
            for (std::size_t p = 0; there && p < parts; ++p) archive(block[p]);
          });
        },
        [&](team::Archive& archive) {
          each([&](auto& block, std::size_t parts) {
            bool there = false;
            archive(there);
            if (!there) return;
            if (block == nullptr) block = std::make_unique<HostPart[]>(parts);
            for (std::size_t p = 0; p < parts; ++p) {
              HostPart more;
              archive(more);
              block[p].add(more);
            }
          });
        });
    from = to;
  }
}

}  // namespace tprof::diagnose
