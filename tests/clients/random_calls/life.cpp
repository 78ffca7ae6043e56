// Communicators that are made in every way, split, shrunk and ended; their handles are reused.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "player.h"

namespace {

constexpr std::size_t kMostFamilies = 6;

// The first player makes the id, and the others read it from a file.
ncclUniqueId agree_on_id(const Player& p, int number) {
  ncclUniqueId id;
  const std::string path = p.o.ids + "/" + std::to_string(number);
  if (p.index == 0) {
    OK(CALL(ncclGetUniqueId)(&id));
    if (p.o.players() == 1) return id;
    std::ofstream(path + ".new", std::ios::binary).write(id.internal, sizeof id.internal);
    std::filesystem::rename(path + ".new", path);
    return id;
  }
  for (;;) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(id.internal, sizeof id.internal)) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  for (;;) {
    OK(CALL(ncclCommGetAsyncError)(comm, &state));
    if (state != ncclInProgress) break;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  OK(state);
}

struct Making {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  std::string name;

  explicit Making(Player& p) {
    config.blocking = p.common.chance(70) ? 1 : 0;
    name = "family " + std::to_string(p.families_made);
    // Only a blocking communicator may be unnamed: it is there when the call has returned.
    if (config.blocking == 0 || p.common.chance(50)) config.commName = name.c_str();
  }
  Making(const Making&) = delete;
};

Family empty(Player& p) {
  Family f;
  f.of.resize(p.ranks.size());
  f.size.resize(p.ranks.size());
  f.place.resize(p.ranks.size());
  f.issued.resize(p.ranks.size());
  f.number = p.families_made++;
  return f;
}

void keep(Player& p, Family f) {
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    if (f.of[i] == nullptr) continue;
    settle(f.of[i]);
    OK(CALL(ncclCommCount)(f.of[i], &f.size[i]));
    OK(CALL(ncclCommUserRank)(f.of[i], &f.place[i]));
  }
  tell(p, "family %d: %d of %d", f.number, f.place[0], f.size[0]);
  p.families.push_back(std::move(f));
}

// Makes a communicator of all ranks, or one for each rank alone.
void init(Player& p, bool alone) {
  const Making making(p);
  Family f = empty(p);
  const int way = static_cast<int>(p.common.below(3));
  if (p.o.players() == 1 && !alone && p.common.chance(30)) {
    std::vector<int> devices;
    for (const Rank& r : p.ranks) devices.push_back(r.device);
    OK(CALL(ncclCommInitAll)(f.of.data(), static_cast<int>(devices.size()), devices.data()));
    return keep(p, std::move(f));
  }
  const ncclUniqueId shared = agree_on_id(p, f.number);
  OK(CALL(ncclGroupStart)());
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    const Rank& r = p.ranks[i];
    ncclUniqueId id = shared;
    if (alone) OK(CALL(ncclGetUniqueId)(&id));
    const int n = alone ? 1 : p.o.world(), rank = alone ? 0 : r.rank;
    OK(CALL(cudaSetDevice)(r.device));
    ncclConfig_t config = making.config;
    if (way == 0) MUST(accepted(CALL(ncclCommInitRank)(&f.of[i], n, id, rank)));
    if (way == 1) MUST(accepted(CALL(ncclCommInitRankConfig)(&f.of[i], n, id, rank, &config)));
    if (way == 2) {
      MUST(accepted(CALL(ncclCommInitRankScalable)(&f.of[i], n, rank, 1, &id, &config)));
    }
  }
  MUST(accepted(CALL(ncclGroupEnd)()));
  f.blocking = way == 0 || making.config.blocking != 0;
  keep(p, std::move(f));
}

// Makes a child of every communicator of a family; it is there once its parent has settled.
template <class Make>
void derive(Player& p, const Family& parent, bool blocking, Make make) {
  Family f = empty(p);
  f.blocking = blocking;
  std::vector<bool> expected(p.ranks.size());
  OK(CALL(ncclGroupStart)());
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    if (parent.of[i] != nullptr) expected[i] = make(i, &f.of[i]);
  }
  MUST(accepted(CALL(ncclGroupEnd)()));
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    if (parent.of[i] != nullptr) settle(parent.of[i]);
    while (expected[i] && __atomic_load_n(&f.of[i], __ATOMIC_ACQUIRE) == nullptr) {
      std::this_thread::yield();
    }
  }
  keep(p, std::move(f));
}

void split(Player& p, const Family& parent) {
  Making making(p);
  const std::size_t colours = 1 + p.common.below(3), salt = p.common.below(7);
  const bool turned = p.common.chance(50), without = p.common.chance(30);
  const bool configured = !parent.blocking || salt % 2 == 0;
  derive(p, parent, !configured || making.config.blocking != 0,
         [&](std::size_t i, ncclComm_t* child) {
           const int place = parent.place[i];
           int colour =
               static_cast<int>((static_cast<std::size_t>(place) * (salt + 1) + salt) % colours);
           if (without && place == 0) colour = NCCL_SPLIT_NOCOLOR;
           ncclConfig_t config = making.config;
           MUST(accepted(CALL(ncclCommSplit)(parent.of[i], colour, turned ? -place : place, child,
                                             configured ? &config : nullptr)));
           return colour != NCCL_SPLIT_NOCOLOR;
         });
}

void shrink(Player& p, const Family& parent) {
  Making making(p);
  const std::size_t salt = p.common.below(64);
  derive(p, parent, making.config.blocking != 0, [&](std::size_t i, ncclComm_t* child) {
    if (parent.size[i] == 1) return false;
    int excluded = static_cast<int>(salt) % parent.size[i];
    if (excluded == parent.place[i]) return false;
    ncclConfig_t config = making.config;
    MUST(accepted(
        CALL(ncclCommShrink)(parent.of[i], &excluded, 1, child, &config, NCCL_SHRINK_DEFAULT)));
    return true;
  });
}

// Waits for all ranks, so that none ends a communicator that another one still makes or asks.
void meet(Player& p) {
  Family& world = p.families[0];
  OK(CALL(ncclGroupStart)());
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    const Rank& r = p.ranks[i];
    MUST(accepted(
        CALL(ncclAllReduce)(r.memory, r.memory, 1, ncclInt8, ncclMax, world.of[i], r.streams[0])));
    ++world.issued[i];
  }
  MUST(accepted(CALL(ncclGroupEnd)()));
  synchronize(p);
}

void end(Player& p, std::size_t which) {
  meet(p);
  forget_graphs_with(p, p.families[which].number);
  const std::size_t how = p.common.below(3);
  tell(p, "end of family %d", p.families[which].number);
  for (ncclComm_t comm : p.families[which].of) {
    if (comm == nullptr) continue;
    if (how == 0) MUST(accepted(CALL(ncclCommFinalize)(comm)));
    if (how == 0) settle(comm);
    OK(how == 2 ? CALL(ncclCommAbort)(comm) : CALL(ncclCommDestroy)(comm));
  }
  p.families.erase(p.families.begin() + static_cast<std::ptrdiff_t>(which));
}

}  // namespace

void make_world(Player& p) {
  init(p, false);
}

void life_turn(Player& p) {
  Dice& d = p.common;
  // The first family stays, so that there is always one with all ranks.
  if (p.families.size() == kMostFamilies || (p.families.size() > 1 && d.chance(40))) {
    return end(p, 1 + d.below(p.families.size() - 1));
  }
  const std::size_t which = d.below(p.families.size());
  const Family parent = p.families[which];
  switch (d.below(4)) {
    case 0:
      return init(p, false);
    case 1:
      return init(p, true);
    case 2:
      return parent.shrunk ? init(p, true) : split(p, parent);
    default:
      p.families[which].shrunk = true;
      return parent.shrunk ? init(p, false) : shrink(p, parent);
  }
}
