// Finds how long the transfers of each link take, and how long they should take: as long as the
// link's own usual transfer of the same call of a step, or as on other links that carry the same.
#include <algorithm>
#include <map>
#include <utility>

#include "interpose/format/ledger.h"
#include "why/edges.h"
#include "why/numbers.h"
#include "why/stages.h"

namespace tprof::why {
namespace {

using graph::Node;
using graph::Wait;

// Two links may have different places in the network.
constexpr double kTimesTheOthers = 1.25;
constexpr double kTimesTheOther = 2;

// By rank of the run and row: the only other rank of its messages.
using Peers = std::vector<std::vector<std::uint32_t>>;
constexpr std::uint32_t kNobody = UINT32_MAX;       // a collective
constexpr std::uint32_t kSeveral = UINT32_MAX - 1;  // messages with several, timed as one

Peers peers_of(const run::Run& run) {
  Peers peers;
  for (const run::Rank& rank : run.ranks) peers.emplace_back(rank.calls.size(), kNobody);
  for (std::size_t m = 0; m < run.meetings(); ++m) {
    const auto rows = run.meeting(m);
    if (!run.ranks[rows[0].rank].calls.is[rows[0].row].messages) continue;
    for (const run::Row& mine : rows) {
      for (const run::Row& other : rows) {
        if (other.rank == mine.rank) continue;
        std::uint32_t& peer = peers[mine.rank][mine.row];
        peer = peer == kNobody || peer == other.rank ? other.rank : kSeveral;
      }
    }
  }
  return peers;
}

using Ends = std::pair<std::size_t, std::size_t>;

struct Transfer {
  std::uint32_t link = 0;
  std::uint32_t step = 0;
  std::uint32_t call = 0;  // graph::Position
  Link::What what{};
  std::uint32_t edge = 0;  // the first one, in Edges
  std::uint32_t edges = 0;
  double ns = 0;
};

class TransferFinder {
 public:
  TransferFinder(const Evidence& e, Edges& to)
      : e_(e),
        model_(*e.model),
        to_(to),
        edges_(to.edges[Edges::index(Of::transfers)]),
        needs_(to.needs[Edges::index(Of::transfers)]) {}

  void find() {
    const Places rank_of = ranks_of_run(e_);
    const Peers peers = peers_of(model_.run());
    const auto meetings = std::ranges::count(model_.graph().wait, graph::Wait::meeting);
    all_.reserve(static_cast<std::size_t>(meetings));
    edges_.reserve(static_cast<std::size_t>(2 * meetings));
    for (std::size_t r = 0; r < rank_of.size(); ++r) {
      if (rank_of[r] != SIZE_MAX) add_rank(r, rank_of, peers[r]);
    }
    find_usual();
    find_others();
  }

 private:
  void add_rank(std::size_t r, const Places& rank_of, const std::vector<std::uint32_t>& peers) {
    const graph::Graph& g = model_.graph();
    const run::Rank& rank = model_.run().ranks[r];
    const run::Calls& c = rank.calls;
    // By the rank's own communicator number, and the peer.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> links;
    for (std::size_t row = 0; row < c.size(); ++row) {
      const graph::Position at = model_.position(g.called(r, row));
      const std::uint32_t step = to_.place(e_, at.step);
      if (step == Edge::kNone || !c.is[row].met) continue;
      const std::uint32_t peer = peers[row];
      const auto [link, fresh] = links.try_emplace({c.comm[row], peer});
      if (fresh) {
        const std::size_t other = peer == kNobody    ? SIZE_MAX
                                  : peer == kSeveral ? rank_of[r]
                                                     : rank_of[peer];
        link->second = link_of(read::comm_of(*rank.process, c.comm[row])->id, rank_of[r], other);
      }
      Transfer t{.link = link->second,
                 .step = step,
                 .call = at.call,
                 .what = {c.bucket[row], bytes_class(c.bytes[row] / c.made[row]),
                          way_of(c, row, peer < r)},
                 .edge = static_cast<std::uint32_t>(edges_.size())};
      const Node n = g.ended(r, row);
      for (std::uint32_t i = g.first[n]; i < g.first[n + 1]; ++i) {
        edges_.push_back({i, t.link, step});
        if (g.wait[i] == Wait::meeting) t.ns = static_cast<double>(g.lag_ns[i]);
      }
      t.edges = static_cast<std::uint32_t>(edges_.size()) - t.edge;
      all_.push_back(t);
    }
  }

  static Link::Way way_of(const run::Calls& c, std::size_t row, bool from_lower) {
    static const text::Kept kSend("ncclSend");
    if (!c.is[row].messages || c.is[row].mixed) return Link::Way::all;
    return (c.name[row] == kSend) != from_lower ? Link::Way::up : Link::Way::down;
  }

  // `peer`: SIZE_MAX: the link is a communicator's.
  std::uint32_t link_of(const std::string& comm, std::size_t rank, std::size_t peer) {
    const Ends ends = peer == SIZE_MAX ? Ends(peer, peer) : Ends(std::minmax(rank, peer));
    const auto [link, fresh] =
        numbers_.try_emplace(std::pair(comm, ends), static_cast<std::uint32_t>(to_.links.size()));
    if (fresh) to_.links.push_back({.comm = comm, .messages = peer != SIZE_MAX});
    to_.links[link->second].ranks.insert(rank);
    return link->second;
  }

  void find_usual() {
    needs_.all.assign(to_.links.size(), Series(to_.steps.size()));
    std::ranges::stable_sort(all_, {}, [](const Transfer& t) { return std::pair(t.link, t.call); });
    for (auto first = all_.begin(), last = first; first != all_.end(); first = last) {
      std::vector<double> each;
      for (; last != all_.end() && last->link == first->link && last->call == first->call; ++last) {
        each.push_back(last->ns);
        needs_.all[last->link][last->step] += last->ns;
      }
      const double usual = quantile(std::move(each), run::kUsual);
      for (const Transfer& t : std::span(first, last)) {
        for (Edge& at : std::span(edges_).subspan(t.edge, t.edges)) {
          const double ns = static_cast<double>(model_.graph().lag_ns[at.edge]);
          if (ns > usual) at.as_usual = static_cast<float>(usual / ns);
        }
      }
    }
    for (std::size_t k = 0; k < to_.links.size(); ++k) {
      for (double& ns : needs_.all[k]) ns /= static_cast<double>(to_.links[k].ranks.size());
    }
  }

  // Links are alike if as many ranks on as many hosts send the same over them.
  void find_others() {
    struct Like {
      Link::What what{};
      bool messages = false;
      std::size_t ranks = 0;
      std::size_t hosts = 0;
      auto operator<=>(const Like&) const = default;
    };
    std::map<std::pair<std::uint32_t, Link::What>, std::vector<double>> each;
    for (const Transfer& t : all_) each[{t.link, t.what}].push_back(t.ns);
    std::map<Like, std::vector<std::pair<std::uint32_t, std::vector<double>>>> alike;
    for (auto& [of, ns] : each) {
      const Link& link = to_.links[of.first];
      std::set<std::string_view> hosts;
      for (const std::size_t r : link.ranks) hosts.insert(e_.times.ranks[r]->header.host);
      alike[{of.second, link.messages, link.ranks.size(), hosts.size()}].emplace_back(
          of.first, std::move(ns));
    }
    for (const auto& [like, links] : alike) {
      if (links.size() < 2) continue;
      std::vector<double> medians;
      for (const auto& [link, ns] : links) medians.push_back(median(ns));
      const double usual = median(medians);  // of two: the faster one
      const double least = usual * (links.size() == 2 ? kTimesTheOther : kTimesTheOthers);
      const auto others = std::ranges::count_if(medians, [&](double ns) { return ns < least; });
      for (const auto& [link, ns] : links) {
        // A slow link slows every transfer. If some are as fast as the others', it is something
        // else.
        const double own = median(ns);
        if (own < least || quantile(ns, 0.1) < usual) continue;
        to_.links[link].slow.push_back({like.what, own, usual, static_cast<std::size_t>(others)});
      }
    }
    needs_.more.assign(to_.links.size(), Series(to_.steps.size()));
    for (const Transfer& t : all_) {
      const Link& link = to_.links[t.link];
      const auto slow = std::ranges::find(link.slow, t.what, &Link::Slow::what);
      if (slow == link.slow.end()) continue;
      const double times = slow->usual_ns / slow->ns;
      for (Edge& at : std::span(edges_).subspan(t.edge, t.edges)) {
        at.as_others = static_cast<float>(times);
      }
      needs_.more[t.link][t.step] += t.ns * (1 - times) / static_cast<double>(link.ranks.size());
    }
    needs_.more_than_middle = needs_.more;
  }

  const Evidence& e_;
  const graph::Model& model_;
  Edges& to_;
  std::vector<Edge>& edges_;
  Needs& needs_;
  std::map<std::pair<std::string, Ends>, std::uint32_t> numbers_{};
  std::vector<Transfer> all_{};
};

}  // namespace

void find_transfers(const Evidence& e, Edges& edges) {
  TransferFinder(e, edges).find();
}

}  // namespace tprof::why
