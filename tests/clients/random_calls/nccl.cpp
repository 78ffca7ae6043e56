// Collectives and point-to-point calls, alone and in groups: nested, refused, simulated.
#include "player.h"

namespace {

constexpr ncclDataType_t kTypes[] = {ncclInt8,    ncclUint8,    ncclInt32,      ncclUint32,
                                     ncclInt64,   ncclUint64,   ncclFloat16,    ncclFloat32,
                                     ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};
constexpr std::size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr ncclRedOp_t kReductions[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

enum class Kind {
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  bcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  neighbours,
};
constexpr int kKinds = 10;
constexpr const char* kNames[] = {"ncclAllGather",        "ncclReduceScatter", "ncclAllReduce",
                                  "ncclBroadcast",        "ncclBcast",         "ncclReduce",
                                  "ncclAlltoAll",         "ncclGather",        "ncclScatter",
                                  "ncclSend and ncclRecv"};

enum class Refusal { none, root, type, comm };

// A call that all ranks of a family make at once.
struct Move {
  Kind kind;
  std::size_t family, type, count;
  ncclRedOp_t reduction;
  std::size_t salt, stream;
  bool scaled;  // reduces by an operator of the program's own
  Refusal refusal;
};

Move draw(Player& p, bool may_refuse) {
  Dice& d = p.common;
  Move m{};
  m.family = d.below(p.families.size());
  m.kind = static_cast<Kind>(d.below(kKinds));
  m.type = d.below(std::size(kTypes));
  m.count = d.size(kRegion / kSizes[m.type] / static_cast<std::size_t>(p.o.world()));
  // Most messages are small; the others take most of the time.
  if (m.count > 2048 && !d.chance(5)) m.count %= 2048;
  m.reduction = d.one_of(kReductions);
  m.salt = d.below(1 << 20);
  m.stream = d.below(2);
  m.scaled = d.chance(10);
  const std::size_t how = 1 + d.below(3);
  // A group fails as a whole. It has to fail on every rank, or the others would wait.
  if (may_refuse) m.family = 0;
  m.refusal = may_refuse ? static_cast<Refusal>(how) : Refusal::none;
  return m;
}

// Makes one rank's part; false if the library refused any of it.
bool make(const Move& m, const Rank& r, const Family& f, std::size_t i) {
  ncclComm_t comm = m.refusal == Refusal::comm ? nullptr : f.of[i];
  ncclDataType_t type =
      m.refusal == Refusal::type ? static_cast<ncclDataType_t>(77) : kTypes[m.type];
  const int n = f.size[i];
  const int root = m.refusal == Refusal::root ? n : static_cast<int>(m.salt) % n;
  cudaStream_t stream = r.streams[m.stream];
  char* send = r.memory;
  char* recv = m.salt % 3 == 0 ? send : r.memory + kRegion;
  OK(CALL(cudaSetDevice)(r.device));
  ncclRedOp_t reduction = m.reduction;
  if (m.scaled) {
    double scalar = 0;
    OK(ncclRedOpCreatePreMulSum(&reduction, &scalar, kTypes[m.type], ncclScalarHostImmediate,
                                f.of[i]));
  }
  switch (m.kind) {
    case Kind::all_gather:
      return accepted(CALL(ncclAllGather)(send, recv, m.count, type, comm, stream));
    case Kind::reduce_scatter:
      return accepted(CALL(ncclReduceScatter)(send, recv, m.count, type, reduction, comm, stream));
    case Kind::all_reduce:
      return accepted(CALL(ncclAllReduce)(send, recv, m.count, type, reduction, comm, stream));
    case Kind::broadcast:
      return accepted(CALL(ncclBroadcast)(send, recv, m.count, type, root, comm, stream));
    case Kind::bcast:
      return accepted(CALL(ncclBcast)(send, m.count, type, root, comm, stream));
    case Kind::reduce:
      return accepted(CALL(ncclReduce)(send, recv, m.count, type, reduction, root, comm, stream));
    case Kind::all_to_all:
      return accepted(CALL(ncclAlltoAll)(send, r.memory + kRegion, m.count, type, comm, stream));
    case Kind::gather:
      return accepted(
          CALL(ncclGather)(send, r.memory + kRegion, m.count, type, root, comm, stream));
    case Kind::scatter:
      return accepted(
          CALL(ncclScatter)(r.memory + kRegion, send, m.count, type, root, comm, stream));
    case Kind::neighbours: {
      const int step = static_cast<int>(m.salt % 4);
      const int to = m.refusal == Refusal::root ? n : (f.place[i] + step) % n;
      const int from = m.refusal == Refusal::root ? -1 : (f.place[i] + n - step % n) % n;
      const bool sent = accepted(CALL(ncclSend)(send, m.count, type, to, comm, stream));
      return accepted(CALL(ncclRecv)(r.memory + kRegion, m.count, type, from, comm, stream)) &&
             sent;
    }
  }
  return false;
}

// True if the odd rank may differ in this call. A small one ends as if all ranks were equal.
bool may_be_odd(const Player& p, const Move& m) {
  return p.o.odd >= 0 && !p.odd_done && p.turn >= p.o.odd_turn && m.refusal == Refusal::none &&
         m.kind != Kind::neighbours && m.count > 0 && m.count < 1000;
}

void for_all_ranks(Player& p, const Move& m, bool will_count, bool* refused) {
  Family& f = p.families[m.family];
  tell(p, "%s of %zu on family %d, stream %zu", kNames[static_cast<int>(m.kind)], m.count, f.number,
       m.stream);
  const bool odd = will_count && may_be_odd(p, m);
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    if (f.of[i] == nullptr) continue;
    Move mine = m;
    // With nobody else in the communicator, there is nobody to differ from.
    if (odd && p.ranks[i].rank == p.o.odd && f.size[i] > 1) {
      p.odd_done = true;
      ++mine.count;
      std::printf("odd: rank %d size %d seq %llu function %s\n", p.o.odd, f.size[i],
                  static_cast<unsigned long long>(f.issued[i]), kNames[static_cast<int>(m.kind)]);
    }
    if (!make(mine, p.ranks[i], f, i)) *refused = true;
    if (m.kind != Kind::neighbours) ++f.issued[i];
  }
}

std::vector<std::vector<std::uint64_t>> issued(const Player& p) {
  std::vector<std::vector<std::uint64_t>> numbers;
  for (const Family& f : p.families) numbers.push_back(f.issued);
  return numbers;
}

}  // namespace

int captured_collectives(Player& p) {
  Move m = draw(p, false);
  m.stream = 0;
  bool refused = false;
  OK(CALL(ncclGroupStart)());
  for_all_ranks(p, m, false, &refused);
  MUST(accepted(CALL(ncclGroupEnd)()) && !refused);
  return p.families[m.family].number;
}

void nccl_turn(Player& p) {
  Dice& d = p.common;
  const std::size_t calls = d.chance(60) ? 1 : 1 + d.below(5);
  const bool refuse = d.chance(10), simulate = d.chance(5);
  // Point-to-point calls, and several ranks of one thread, need a group.
  const bool grouped = d.chance(40) || calls > 1 || p.o.held > 1;
  const std::size_t nested = d.below(3);
  std::vector<Move> moves;
  for (std::size_t i = 0; i < calls; ++i) {
    moves.push_back(draw(p, refuse && i + 1 == calls && p.o.refused != 0));
  }
  const bool in_group = grouped || moves[0].kind == Kind::neighbours;
  const auto before = issued(p);
  bool refused = false;
  if (in_group) OK(CALL(ncclGroupStart)());
  for (std::size_t i = 0; in_group && i < nested; ++i) OK(CALL(ncclGroupStart)());
  const bool will_count = moves.back().refusal == Refusal::none && !simulate;
  for (const Move& m : moves) for_all_ranks(p, m, will_count, &refused);
  for (std::size_t i = 0; in_group && i < nested; ++i) OK(CALL(ncclGroupEnd)());
  bool done = !refused;
  if (in_group && simulate && p.o.refused != 0) {
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    const ncclResult_t result = CALL(ncclGroupSimulateEnd)(&info);
    MUST(accepted(result) == !refused);
    done = false;
  } else if (in_group) {
    MUST(accepted(CALL(ncclGroupEnd)()) == !refused);
  }
  if (!done) {
    for (std::size_t i = 0; i < p.families.size(); ++i) p.families[i].issued = before[i];
  }
}
