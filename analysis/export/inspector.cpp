// Writes the collectives of a rank as NCCL's Inspector does (plugins/profiler/inspector, format
// v4.0), one JSON object each.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "export/formats.h"
#include "interpose/format/schema.h"
#include "stats/totals.h"

namespace tprof::trace_export {
namespace {

using Json = nlohmann::ordered_json;
using read::Process;

// Returns the Inspector's name of a collective (ncclFuncToString). Empty if it does not know it.
std::string_view collective(const std::string& function) {
  if (function == "ncclBcast") return "Broadcast";
  for (const std::string_view name :
       {"AllGather", "AllReduce", "Broadcast", "Reduce", "ReduceScatter"}) {
    if (function.size() == 4 + name.size() && function.ends_with(name)) return name;
  }
  return {};
}

// Returns the bytes as the Inspector counts them: what a rank gives, or gets from a reduce-scatter.
std::uint64_t message_bytes(const read::Event& e, std::int64_t nranks) {
  const bool of_all = e.bucket == Bucket::ALLGATHER || e.bucket == Bucket::RESHARDING;
  return of_all && nranks > 0 ? e.bytes / static_cast<std::uint64_t>(nranks) : e.bytes;
}

// The number of hosts that the ranks of each communicator are on, for communicators of which the
// job has all ranks.
using Hosts = std::map<std::pair<std::string, std::int64_t>, std::size_t>;

Hosts hosts_of_communicators(const job::Job& job) {
  struct HostsMet {
    std::set<std::int64_t> ranks{};
    std::set<std::string> hosts{};
  };
  std::map<std::pair<std::string, std::int64_t>, HostsMet> all;
  for (const Process* p : job.processes) {
    for (const auto& [number, comm] : p->comms) {
      if (!comm.known() || comm.rank < 0) continue;
      HostsMet& members = all[{comm.id, comm.nranks}];
      members.ranks.insert(comm.rank);
      members.hosts.insert(p->header.host);
    }
  }
  Hosts hosts;
  for (const auto& [comm, members] : all) {
    if (std::cmp_equal(members.ranks.size(), comm.second)) hosts[comm] = members.hosts.size();
  }
  return hosts;
}

class InspectorLog : public RankFormat {
 public:
  InspectorLog(const Exported& of, std::shared_ptr<const Hosts> hosts, std::int64_t rank)
      : of_(of), hosts_(std::move(hosts)), rank_(rank) {}

  std::string file_name() const override { return fmt::format("rank-{:05}.jsonl", rank_); }
  std::uint64_t timed() const override { return timed_; }
  void call(const Process& p, const read::Event& e, const read::DeviceTime* t,
            std::string& out) override {
    const std::string_view name = collective(e.name);
    // A group's time belongs to none of its calls.
    if (t == nullptr || t->calls != 1 || t->dur_ns <= 0 || !e.collective() || name.empty()) return;
    const read::Comm* found = read::comm_of(p, e.comm);
    if (found == nullptr || !found->known()) return;
    const read::Comm& comm = *found;
    const read::Amounts amounts = {.device_ns = static_cast<std::uint64_t>(t->dur_ns),
                                   .device_timed = 1,
                                   .device_bytes = e.bytes};
    stats::OpKey key;
    key.bucket = e.bucket;
    key.nranks = comm.nranks;
    const auto algorithm = stats::algbw(amounts);
    const auto bus = stats::busbw(key, amounts);
    if (!algorithm || !bus) return;
    Json header = {{"id", comm.id}};
    if (comm.name) header["comm_name"] = *comm.name;
    header["rank"] = comm.rank;
    header["n_ranks"] = comm.nranks;
    const auto hosts = hosts_->find({comm.id, comm.nranks});
    if (hosts != hosts_->end()) header["nnodes"] = hosts->second;
    const std::int64_t ended_ns =
        of_.base_time_ns + of_.ranks.at(&p).at.moved(t->ts_ns) + t->dur_ns;
    const Json line = {{"header", std::move(header)},
                       {"metadata",
                        {{"inspector_output_format_version", "v4.0"},
                         {"rec_mechanism", std::string("tprof ") + kVersion},
                         {"dump_timestamp_us", ended_ns / 1000},
                         {"hostname", p.header.host},
                         {"pid", p.header.pid}}},
                       {"coll_perf",
                        {{"coll", name},
                         {"coll_sn", e.seq},
                         {"coll_msg_size_bytes", message_bytes(e, comm.nranks)},
                         {"coll_exec_time_us", (t->dur_ns + 500) / 1000},
                         {"coll_algobw_gbs", *algorithm},
                         {"coll_busbw_gbs", *bus}}}};
    out += line.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
    ++timed_;
  }

 private:
  const Exported& of_;
  std::shared_ptr<const Hosts> hosts_;
  std::int64_t rank_;
  std::uint64_t timed_ = 0;
};

}  // namespace

MakeRankFormat inspector_logs(const Exported& of) {
  const auto hosts = std::make_shared<const Hosts>(hosts_of_communicators(of.job));
  return [&of, hosts](const std::vector<const Process*>& all) {
    return std::make_unique<InspectorLog>(of, hosts, all.front()->header.rank.value_or(0));
  };
}

}  // namespace tprof::trace_export
