#include "read/process.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "interpose/format/setting_values.h"

namespace tprof::read {
namespace {

// A communicator and its handles in the process, by rank.
struct Held {
  std::int64_t first = 0;  // the lowest number
  std::int64_t nranks = 0;
  std::map<std::int64_t, const Comm*> members;
};

// Returns the largest communicator; of equally large ones, the one with most ranks here, then the
// one created first.
Held largest(const Process& p) {
  std::map<std::string_view, Held> all;
  for (const auto& [number, comm] : p.comms) {
    if (!comm.known()) continue;
    Held& held = all.try_emplace(comm.id, Held{number, 0, {}}).first->second;
    held.nranks = std::max(held.nranks, comm.nranks);
    held.members.try_emplace(comm.rank, &comm);
  }
  const auto found = std::ranges::max_element(all, {}, [](const auto& entry) {
    const Held& held = entry.second;
    return std::tuple(held.nranks, held.members.size(), -held.first);
  });
  return found == all.end() ? Held{} : std::move(found->second);
}

// If the launcher counts processes as ranks, a communicator that is smaller than its world, or
// wholly within one process, is not the world.
bool is_world(const Held& held, const Header& h) {
  const bool launcher_says = h.rank && h.world_size && !h.identified;
  if (!launcher_says || *h.world_size == 1) return true;
  return held.nranks >= *h.world_size &&
         held.nranks > static_cast<std::int64_t>(held.members.size());
}

// No machine has so many devices. The limit bounds the copies of header and footer for hostile
// files.
constexpr std::size_t kMaxLanes = 256;
constexpr std::size_t kMaxCopied = std::size_t{1} << 19;

bool can_be_copied(const Process& p, std::size_t lanes) {
  std::size_t parts = p.header.clock.size();
  if (p.footer)
    parts += p.footer->functions.size() + p.footer->unseen.size() + p.footer->tools.size();
  return lanes <= kMaxLanes && parts <= kMaxCopied / lanes;
}

class Division {
 public:
  Division(const Process& process, const Held& held) : process_(process) {
    for (const auto& [rank, comm] : held.members) {
      device_.try_emplace(comm->device, lane_.size());
      lane_.try_emplace(comm->comm, lane_.size());
    }
  }

  // A child's lane is its parent's. A communicator without a parent goes by its device.
  std::size_t of_comm(std::int64_t number) {
    const auto known = lane_.find(number);
    if (known != lane_.end()) return known->second;
    const Comm* comm = comm_of(process_, number);
    if (comm == nullptr) return 0;
    const std::optional<std::int64_t>& parent = comm->parent;
    // A damaged file may have a cycle.
    const bool child = parent && *parent < number && process_.comms.contains(*parent);
    return lane_[number] = child ? of_comm(*parent) : of_device(comm->device);
  }

  std::size_t of_device(std::int64_t device) const {
    const auto found = device_.find(device);
    return found == device_.end() ? 0 : found->second;
  }

  std::size_t of_row(const Row& row) {
    if (row.comm) return of_comm(*row.comm);
    return row.device ? of_device(*row.device) : 0;
  }

 private:
  const Process& process_;
  std::map<std::int64_t, std::size_t> lane_;    // by communicator
  std::map<std::int64_t, std::size_t> device_;  // the first lane on it
};

struct HashOfVariables {
  std::size_t operator()(const Variables& all) const {
    const std::hash<std::string_view> text;
    std::size_t hash = all.size();
    for (const auto& [name, value] : all) hash = hash * 31 + (text(name) ^ (text(value) << 1));
    return hash;
  }
};

// Returns the ledgers, the last one first.
std::vector<Ledger*> ledgers_of(Process& process) {
  std::vector<Ledger*> all;
  if (process.ledger) all.push_back(&*process.ledger);
  for (Ledger& end : process.epoch_ends) all.push_back(&end);
  return all;
}

}  // namespace

KeptVariables::KeptVariables(const Variables& all)
    : all_(&text::kept<Variables, HashOfVariables>(all)) {}

std::vector<Process> lanes_of(Process process) {
  const Held held = largest(process);
  std::vector<Process> lanes;
  const std::size_t n = held.members.size();
  if (n < 2 || !is_world(held, process.header) || !can_be_copied(process, n)) {
    lanes.push_back(std::move(process));
    return lanes;
  }
  Division division(process, held);
  Process bare = process;
  bare.comms.clear();
  for (Ledger* ledger : ledgers_of(bare)) {
    ledger->rows.clear();
    ledger->collectives.clear();
    if (ledger->memory) ledger->memory->clear();
  }
  for (const auto& [rank, comm] : held.members) {
    Process& lane = lanes.emplace_back(bare);
    lane.lane = lanes.size() - 1;
    lane.lanes = n;
    lane.device = comm->device;
    lane.header.rank = rank;
    lane.header.world_size = held.nranks;
  }
  for (const auto& [number, comm] : process.comms) {
    lanes[division.of_comm(number)].comms.emplace(number, comm);
  }
  std::vector<std::vector<Ledger*>> parts;
  for (Process& lane : lanes) parts.push_back(ledgers_of(lane));
  std::size_t at = 0;
  for (const Ledger* whole : ledgers_of(process)) {
    for (const MemoryUse& use : whole->memory.value_or(std::vector<MemoryUse>())) {
      parts[use.device ? division.of_device(*use.device) : 0][at]->memory->push_back(use);
    }
    for (const Row& row : whole->rows) parts[division.of_row(row)][at]->rows.push_back(row);
    for (const Collectives& c : whole->collectives) {
      parts[division.of_comm(c.comm)][at]->collectives.push_back(c);
    }
    ++at;
  }
  return lanes;
}

const Process& lane_of_call(const Process& any, const std::optional<std::int64_t>& comm,
                            const std::optional<std::int64_t>& device) {
  if (any.lanes == 1) return any;
  const Process* first = &any - any.lane;
  for (const Process* p = first; p != first + any.lanes; ++p) {
    if (comm ? p->comms.contains(*comm) : device && p->device == *device) return *p;
  }
  return *first;
}

bool wants_lines(const Process& p, Bucket bucket) {
  if (kBuckets[static_cast<std::size_t>(bucket)].lines) return true;
  return p.header.config.get("TPROF_EVENTS") == "all";
}

std::string_view no_lines_by(const Process& p) {
  if (p.header.config.get("TPROF_EVENTS") == "off") return "TPROF_EVENTS=off";
  RankList ranks;
  const bool known = parse_ranks(p.header.config.get("TPROF_RANKS", "all"), ranks);
  return known && p.header.rank && !ranks.has(*p.header.rank) ? "TPROF_RANKS" : "";
}

}  // namespace tprof::read
