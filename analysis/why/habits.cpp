// Habits of the program, the same on all ranks, and what a step would save without each. They are
// choices, and may be intended. Each is a change of the calls in question.
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "why/causes.h"
#include "why/habit.h"
#include "why/numbers.h"
#include "why/stages.h"

namespace tprof::why {

using check::Bytes;
using check::Findings;
using check::Kind;
using check::Percent;

namespace {

// Returns what a rank moved in a bucket in the whole run.
read::Amounts moved(const read::Process& rank, Bucket bucket) {
  read::Amounts all;
  for (const read::Row& row : read::rows_of(rank)) {
    if (row.bucket == bucket) all += row.amounts;
  }
  return all;
}

bool gathers(const run::Calls& c, std::size_t row) {
  return c.comm[row] != run::Calls::kNoComm && c.bucket[row] == Bucket::ALLGATHER;
}
bool scatters(const run::Calls& c, std::size_t row) {
  return c.comm[row] != run::Calls::kNoComm && c.bucket[row] == Bucket::RESHARDING;
}

// The calls on one communicator within a step, by counts.
struct OfComm {
  std::vector<std::uint64_t> forward{};   // gathered by the thread that calls backward()
  std::vector<std::uint64_t> backward{};  // gathered by autograd's threads
  std::vector<std::uint64_t> scattered{};
  bool scatters_ahead = false;  // of the first backward pass, as in sequence parallelism

  // FSDP gathers each unit before its computation and scatters gradients unit by unit: every size
  // that it scatters, or gathers again, was gathered in the forward pass of the same step. ZeRO-1
  // and -2 gather nothing in the forward pass; DeepSpeed's ZeRO-3 scatters other sizes, and has to
  // gather small weights after its update. If a step were cut within its forward pass, the first
  // gathers would seem to follow the previous step's backward pass, but they would then be missing
  // here.
  bool sharded() {
    for (auto* counts : {&forward, &backward, &scattered}) std::ranges::sort(*counts);
    return !scatters_ahead && !scattered.empty() && std::ranges::includes(forward, scattered) &&
           std::ranges::includes(forward, backward);
  }
  // Compares sums, since DeepSpeed's ZeRO-3 gathers in other pieces. Sequence parallelism gathers
  // activations on autograd's threads, which can't be kept.
  bool gathers_again() const {
    const auto sum = [](const std::vector<std::uint64_t>& counts) {
      std::uint64_t all = 0;
      for (const std::uint64_t n : counts) all += n;
      return all;
    };
    return !scatters_ahead && sum(backward) <= sum(forward);
  }
};

// The calls of a rank's step.
struct Step {
  const run::Calls& c;
  Rows rows;
  std::set<std::size_t> behind{};  // all-gathers after the backward pass
  std::map<std::uint32_t, OfComm> comms{};

  Step(const run::Calls& calls, Rows of_step) : c(calls), rows(of_step) {
    find_behind();
    bool ahead = true;
    for (const std::size_t i : rows) {
      if (c.is[i].backward) ahead = false;
      if (behind.contains(i) || (!gathers(c, i) && !scatters(c, i))) continue;
      OfComm& comm = comms[c.comm[i]];
      if (scatters(c, i) && ahead) comm.scatters_ahead = true;
      auto& counts = scatters(c, i)     ? comm.scattered
                     : c.is[i].backward ? comm.backward
                                        : comm.forward;
      counts.insert(counts.end(), c.made[i], c.count[i]);  // calls of a group are equal
    }
  }

  // The last call of a backward pass comes from an autograd thread, or it reduces a gradient on the
  // thread that called backward(), directly afterwards. A step without a backward pass has nothing
  // after it.
  void find_behind() {
    if (std::ranges::none_of(rows, [&](std::size_t i) { return c.is[i].backward; })) return;
    for (auto i = rows.rbegin(); i != rows.rend(); ++i) {
      if (c.is[*i].backward || scatters(c, *i)) return;
      if (gathers(c, *i)) behind.insert(*i);
    }
  }
};

// Returns the all-gathers of weights that need no earlier computation: on a communicator over which
// gradients are scattered, all except the first, which gathers what the previous step updated.
// Statistics of a layer, as of SyncBatchNorm, are gathered on other communicators.
std::set<std::size_t> of_weights(const Step& step) {
  std::set<std::uint32_t> begun;
  std::set<std::size_t> all;
  for (const std::size_t i : step.rows) {
    if (!gathers(step.c, i) || step.behind.contains(i)) continue;
    const OfComm& comm = step.comms.at(step.c.comm[i]);
    if (comm.scattered.empty() || comm.scatters_ahead) continue;
    if (!begun.insert(step.c.comm[i]).second) all.insert(i);
  }
  return all;
}

// Returns the all-gathers after the backward pass that sharded training does not need: on a
// communicator over which weights are sharded, or on that of all ranks if it is not used in
// training.
Places not_needed(Step& step, const run::Rank& rank) {
  std::set<std::uint32_t> sharded;
  for (auto& [number, comm] : step.comms) {
    if (comm.sharded()) sharded.insert(number);
  }
  Places all;
  bool as_ahead = true;  // all gather units of the forward pass
  for (const std::size_t i : step.rows) {
    if (!step.behind.contains(i)) continue;
    const std::uint32_t number = step.c.comm[i];
    const read::Comm* comm = read::comm_of(*rank.process, number);
    const bool of_all = comm != nullptr && comm->nranks == rank.process->header.world_size &&
                        !sharded.empty() && !step.comms.contains(number);
    if (!of_all && !sharded.contains(number)) continue;
    all.push_back(i);
    as_ahead = as_ahead && !of_all &&
               std::ranges::binary_search(step.comms[number].forward, step.c.count[i]);
  }
  if (!as_ahead || all.empty()) return all;
  // Another forward pass, for instance an evaluation in each step, needs what it gathers.
  const std::int64_t from = step.c.came_ns[all.front()];
  const std::int64_t to = step.c.ended_ns[all.back()];
  return 2 * run::covered(rank.work, {from, to}) > to - from ? Places() : all;
}

// Returns the communicators on which a step reduces gradients: nearly all bytes are in the backward
// pass, unlike in tensor parallelism.
std::set<std::uint32_t> of_gradients(const Step& step, Bucket by) {
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> bytes;  // backward, all
  for (const std::size_t i : step.rows) {
    if (step.c.copies(i) || step.c.bucket[i] != by) continue;
    auto& [backward, all] = bytes[step.c.comm[i]];
    all += step.c.bytes[i];
    if (step.c.is[i].backward) backward += step.c.bytes[i];
  }
  std::set<std::uint32_t> comms;
  for (const auto& [comm, sent] : bytes) {
    if (sent.first >= sent.second / 20 * 19) comms.insert(comm);
  }
  return comms;
}

// Returns the steps of a rank in which size(step) is not unusually large: a habit is in every step,
// unlike an evaluation or a checkpoint.
template <typename Of, typename Size>
std::vector<const Of*> of_usual_steps(const std::vector<Of>& steps, Size&& size) {
  std::vector<double> sizes;
  for (const Of& step : steps) sizes.push_back(static_cast<double>(size(step)));
  const double most = 2 * median(std::move(sizes));
  std::vector<const Of*> usual;
  for (const Of& step : steps) {
    if (static_cast<double>(size(step)) <= most) usual.push_back(&step);
  }
  return usual;
}

}  // namespace

double begin_early(const Evidence& e, Changes& change) {
  double all = 0;
  double late = 0;
  each_step(*e.model, [&](std::size_t rank, Rows rows) {
    const Step step(e.model->run().ranks[rank].calls, rows);
    const std::set<std::size_t> early = of_weights(step);
    std::map<std::uint32_t, Places> of_comms;
    for (const std::size_t i : rows) {
      if (step.c.comm[i] != run::Calls::kNoComm) of_comms[step.c.comm[i]].push_back(i);
    }
    for (auto& [number, calls] : of_comms) {
      if (std::ranges::none_of(calls, [&](std::size_t i) { return early.contains(i); })) continue;
      for (std::size_t k = 0; k < calls.size(); ++k) {
        const std::size_t i = calls[k];
        if (!early.contains(i)) continue;
        ++all;
        // Nor does it have to wait for the gradients computed meanwhile.
        const bool behind = step.c.is[i].backward && scatters(step.c, calls[k - 1]);
        if (behind) std::swap(calls[k - 1], calls[k]);
        late += change.come_early(rank, i) || behind ? 1 : 0;
      }
      change.reorder(rank, calls);
    }
  });
  return all == 0 ? 0 : late / all;
}

// All-gathers of weights that wait for earlier computation.
void late_prefetch(const Evidence& e, Findings& found) {
  Changes change(e);
  const double late = begin_early(e, change);
  if (late < 0.5) return;
  tell(e, Kind::late_prefetch, change.saving(), {{"late", Percent{100 * late}}}, found);
}

// Copies that the program waits for. One read at the end of a step, of the loss, does not count.
void blocking_copies(const Evidence& e, Findings& found) {
  using Copies = std::vector<run::Blocked>;
  const auto look = [&](Kind kind, bool to_device) {
    Changes change(e);
    double calls = 0;
    double bytes = 0;
    double of = 0;
    Places who;
    const Places rank_of = ranks_of_run(e);
    for (std::size_t r = 0; r < e.model->run().ranks.size(); ++r) {
      std::map<std::int64_t, Copies> by_step;
      for (const std::int64_t step : e.times.steps) by_step[step];
      for (const run::Blocked& copy : e.model->run().ranks[r].blocked) {
        const auto step = by_step.find(e.model->step_at(r, copy.host.from_ns));
        if (copy.to_device == to_device && step != by_step.end()) step->second.push_back(copy);
      }
      std::vector<Copies> steps;
      for (auto& [step, copies] : by_step) {
        if (!to_device && !copies.empty()) copies.pop_back();
        steps.push_back(std::move(copies));
      }
      const double before = calls;
      const std::vector<const Copies*> usual = of_usual_steps(steps, std::mem_fn(&Copies::size));
      for (const Copies* step : usual) {
        for (const run::Blocked& copy : *step) {
          change.unblock(r, copy);
          ++calls;
          bytes += static_cast<double>(copy.bytes);
        }
      }
      if (calls == before) continue;
      of += static_cast<double>(usual.size());
      if (rank_of[r] != SIZE_MAX) who.push_back(rank_of[r]);
    }
    std::ranges::sort(who);
    if (2 * calls < of || calls == 0) return;
    // Weights that were gathered as soon as the blocked host called need nothing else.
    each_step(*e.model, [&](std::size_t rank, Rows rows) {
      const Step step(e.model->run().ranks[rank].calls, rows);
      for (const std::size_t i : of_weights(step)) {
        if (e.model->graph().assumed[rank][i]) change.come_early(rank, i);
      }
    });
    tell(e, kind, change.saving(),
         {{"calls", std::uint64_t(std::max(1LL, std::llround(calls / of)))},
          {"bytes", Bytes{static_cast<std::uint64_t>(std::llround(bytes / calls))}}},
         found, who);
  };
  look(Kind::blocking_h2d, true);
  look(Kind::blocking_d2h, false);
}

// Weights that are gathered again in the backward pass, which saves memory.
void gathered_again(const Evidence& e, Findings& found) {
  Changes change(e);
  each_step(*e.model, [&](std::size_t rank, Rows rows) {
    const Step step(e.model->run().ranks[rank].calls, rows);
    for (const std::size_t i : rows) {
      const bool again = gathers(step.c, i) && step.c.is[i].backward && !step.behind.contains(i);
      if (again && step.comms.at(step.c.comm[i]).gathers_again()) change.leave_out(rank, i);
    }
  });
  tell(e, Kind::gathered_again, change.saving(), {}, found);
}

// Gradients that are reduced in each micro-batch.
void reduced_again(const Evidence& e, Findings& found) {
  const bool shards = moved(*e.times.ranks.front(), Bucket::RESHARDING).bytes != 0;
  const Bucket by = shards ? Bucket::RESHARDING : Bucket::ALLREDUCE;
  Changes change(e);
  std::uint64_t most = 0;
  each_step(*e.model, [&](std::size_t rank, Rows rows) {
    const run::Calls& c = e.model->run().ranks[rank].calls;
    const Step step(c, rows);
    for (const std::size_t i : of_weights(step)) change.needs_nothing(rank, i);
    const std::set<std::uint32_t> comms = of_gradients(step, by);
    std::map<std::uint32_t, std::vector<Places>> passes;  // by communicator
    std::set<std::uint32_t> reducing;                     // communicators that reduce in this pass
    for (const std::size_t i : rows) {
      // The thread that calls backward() calls nothing else until the pass is over.
      if (!c.is[i].backward) reducing.clear();
      if (!c.is[i].backward || c.bucket[i] != by || !comms.contains(c.comm[i])) continue;
      if (reducing.insert(c.comm[i]).second) passes[c.comm[i]].emplace_back();
      passes[c.comm[i]].back().push_back(i);
    }
    for (auto& [comm, all] : passes) {
      most = std::max<std::uint64_t>(most, all.size());
      all.pop_back();
      for (const Places& pass : all) {
        for (const std::size_t i : pass) change.leave_out(rank, i);
      }
    }
  });
  if (most < 2) return;
  tell(e, Kind::reduced_again, change.saving(), {{"passes", most}}, found);
}

// Tensors sent as float32: as bfloat16 they would be half.
void wide_dtype(const Evidence& e, Findings& found) {
  constexpr double kSmall = 1 << 20;  // bytes; smaller messages are bound by latency
  constexpr double kNearlyAll = 0.9;
  struct Sent {
    double calls = 0;
    double bytes = 0;
    double wide = 0;
    std::vector<std::pair<std::size_t, std::size_t>> rows{};  // rank and row
  };
  std::map<Bucket, Sent> sent;
  each_step(*e.model, [&](std::size_t rank, Rows rows) {
    const run::Calls& c = e.model->run().ranks[rank].calls;
    for (const std::size_t i : rows) {
      // It is unknown how long a message waits for its receiver.
      if (c.comm[i] == run::Calls::kNoComm || c.bucket[i] == Bucket::P2P) continue;
      Sent& all = sent[c.bucket[i]];
      all.calls += c.made[i];
      all.bytes += static_cast<double>(c.bytes[i]);
      if (!c.is[i].wide) continue;
      all.wide += static_cast<double>(c.bytes[i]);
      all.rows.emplace_back(rank, i);
    }
  });
  // Sharded training scatters gradients; a program that only gathers does so by itself.
  const bool shards = sent.contains(Bucket::RESHARDING);
  std::erase_if(sent, [&](const auto& of) {
    const Sent& all = of.second;
    return all.bytes < kSmall * all.calls || all.wide < kNearlyAll * all.bytes;
  });
  Changes change(e);
  std::vector<std::string_view> which;
  double sharded = 0;
  for (const auto& [bucket, all] : sent) {
    Changes alone(e);
    for (const auto& [rank, row] : all.rows) {
      change.scale(rank, row, 0.5);
      alone.scale(rank, row, 0.5);
    }
    const double ns = alone.saving().ns;
    if (ns < kLeastShare * e.step_ns) continue;
    which.push_back(bucket_name(bucket));
    if (bucket == Bucket::ALLGATHER || bucket == Bucket::RESHARDING) sharded += ns;
  }
  if (which.empty()) return;
  const Saving saving = change.saving();
  tell(e, Kind::wide_dtype, saving,
       {{"which", fmt::format("{}", fmt::join(which, " and "))},
        {"one", which.size() == 1},
        {"sharded", shards && sharded * 2 > saving.ns}},
       found);
}

// All-gathers that each step makes after its backward pass, where sharded training needs none: of
// whole weights for a norm or a checkpoint, or of something that the program compares.
void gathers_behind(const Evidence& e, Findings& found) {
  Changes change(e);
  std::map<std::size_t, std::vector<Places>> of_ranks;
  each_step(*e.model, [&](std::size_t rank, Rows rows) {
    const run::Rank& its = e.model->run().ranks[rank];
    Step step(its.calls, rows);
    of_ranks[rank].push_back(not_needed(step, its));
  });
  double calls = 0;
  double bytes = 0;
  double steps = 0;
  for (const auto& [rank, of_steps] : of_ranks) {
    const run::Calls& c = e.model->run().ranks[rank].calls;
    std::size_t make = 0;
    for (const Places* step : of_usual_steps(of_steps, std::mem_fn(&Places::size))) {
      if (step->empty()) continue;
      ++make;
      for (const std::size_t i : *step) {
        // The host's time before the first one may be for something else.
        change.leave_out(rank, i, i != step->front());
        calls += c.made[i];
        bytes += static_cast<double>(c.bytes[i]);
      }
    }
    // All ranks of sharded training do the same; if one doesn't, it is no habit.
    if (make * 2 <= of_steps.size()) return;
    steps += static_cast<double>(make);
  }
  if (calls == 0) return;
  tell(e, Kind::gathers_behind, change.saving(),
       {{"calls", std::uint64_t(std::llround(calls / steps))},
        {"bytes", Bytes{static_cast<std::uint64_t>(std::llround(bytes / calls))}}},
       found);
}

// All-gathers that no sharded training makes: of a metric, a log, or values of all ranks for a
// loss.
void exposed_gathers(const Evidence& e, Findings& found) {
  constexpr double kAlike = 0.1;  // ZeRO-1 and -2 gather as much as they reduce
  const read::Process& first = *e.times.ranks.front();
  const read::Amounts gathered = moved(first, Bucket::ALLGATHER);
  if (gathered.calls == 0 || moved(first, Bucket::RESHARDING).calls != 0) return;
  const auto reduced = static_cast<double>(moved(first, Bucket::ALLREDUCE).elements);
  if (std::abs(static_cast<double>(gathered.elements) - reduced) < kAlike * reduced) return;
  Changes change(e);
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  each_step(*e.model, [&](std::size_t rank, Rows rows) {
    const run::Calls& c = e.model->run().ranks[rank].calls;
    for (const std::size_t i : rows) {
      if (!gathers(c, i)) continue;
      change.leave_out(rank, i);
      calls += c.made[i];
      bytes += c.bytes[i];
    }
  });
  if (calls == 0) return;
  tell(e, Kind::exposed_gathers, change.saving(), {{"bytes", Bytes{bytes / calls}}}, found);
}

}  // namespace tprof::why
