// Writes the collectives of a rank as NCCL's Inspector does (plugins/profiler/inspector, format
// v4.0), one JSON object each.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "export/formats.h"
#include "interpose/format/schema.h"
#include "tables/totals.h"

namespace tprof::trace_export {
namespace {

using Json = nlohmann::ordered_json;
using read::Process;

// Returns the Inspector's name of a collective (ncclFuncToString). Empty if it does not know it.
std::string_view collective(std::string_view function) {
  if (function == "ncclBcast") return "Broadcast";
  for (const std::string_view name :
       {"AllGather", "AllReduce", "Broadcast", "Reduce", "ReduceScatter"}) {
    if (function.size() == 4 + name.size() && function.ends_with(name)) return name;
  }
  return {};
}

// The number of hosts that the ranks of each communicator are on, for communicators of which the
// job has all ranks.
using Hosts = std::map<std::pair<std::string, std::int64_t>, std::size_t>;

Hosts hosts_of_communicators(const job::Job& job) {
  std::map<std::pair<std::string, std::int64_t>, std::map<std::int64_t, std::string>> all;
  for (const Process* p : job.processes) {
    for (const auto& [number, comm] : p->comms) {
      if (comm.known() && comm.rank >= 0) all[{comm.id, comm.nranks}][comm.rank] = p->header.host;
    }
  }
  Hosts hosts;
  for (const auto& [comm, of_rank] : all) {
    std::set<std::string> names;
    for (const auto& [rank, host] : of_rank) names.insert(host);
    if (std::cmp_equal(of_rank.size(), comm.second)) hosts[comm] = names.size();
  }
  return hosts;
}

// Null if it is none of the Inspector's.
Json line_of(const Exported& of, const Hosts& all_hosts, const Process& p, const read::Event& e,
             const read::DeviceTime& t) {
  const std::string_view name = collective(e.name.str());
  const read::Comm* comm = read::comm_of(p, e.comm);
  // A group's time belongs to none of its calls.
  if (t.calls != 1 || t.dur_ns <= 0 || !e.collective() || name.empty() || comm == nullptr ||
      !comm->known()) {
    return {};
  }
  const read::Amounts amounts = {.device_ns = static_cast<std::uint64_t>(t.dur_ns),
                                 .device_timed = 1,
                                 .device_bytes = e.bytes};
  tables::OpKey key;
  key.bucket = e.bucket;
  key.nranks = comm->nranks;
  const auto algorithm = tables::algbw(amounts);
  const auto bus = tables::busbw(key, amounts);
  if (!algorithm || !bus) return {};
  Json header = {{"id", comm->id.str()}};
  if (comm->name) header["comm_name"] = *comm->name;
  header["rank"] = comm->rank;
  header["n_ranks"] = comm->nranks;
  const auto hosts = all_hosts.find({comm->id, comm->nranks});
  if (hosts != all_hosts.end()) header["nnodes"] = hosts->second;
  // It is what a rank gives, or gets from a reduce-scatter.
  const bool of_all = e.bucket == Bucket::ALLGATHER || e.bucket == Bucket::RESHARDING;
  const std::uint64_t parts = of_all ? static_cast<std::uint64_t>(comm->nranks) : 1;
  const std::int64_t ended_ns = of.base_time_ns + of.ranks.at(&p).at.moved(t.ts_ns) + t.dur_ns;
  return {{"header", std::move(header)},
          {"metadata",
           {{"inspector_output_format_version", "v4.0"},
            {"rec_mechanism", std::string("tprof ") + kVersion},
            {"dump_timestamp_us", ended_ns / 1000},
            {"hostname", p.header.host},
            {"pid", p.header.pid}}},
          {"coll_perf",
           {{"coll", name},
            {"coll_sn", e.seq},
            {"coll_msg_size_bytes", e.bytes / std::max<std::uint64_t>(parts, 1)},
            {"coll_exec_time_us", (t.dur_ns + 500) / 1000},
            {"coll_algobw_gbs", *algorithm},
            {"coll_busbw_gbs", *bus}}}};
}

// Takes the lines of a rank.
struct Lines {
  void timed(const read::Event& e, const read::DeviceTime* t) const {
    const Json line = t == nullptr || !e.chosen ? Json() : line_of(of, hosts, rank, e, *t);
    if (line.is_null()) return;
    out.put(line.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n");
    ++written;
  }

  const Exported& of;
  const Hosts& hosts;
  const Process& rank;
  Output& out;
  std::uint64_t& written;
};

}  // namespace

RankFormat inspector_logs(const Exported& of) {
  const auto file_name = [](const RankFormat::Processes& all) {
    return fmt::format("rank-{:05}.jsonl", all.front()->header.rank.value_or(0));
  };
  return {file_name, [&of, hosts = hosts_of_communicators(of.job)](const RankFormat::Processes& all,
                                                                   Output& out) {
            std::uint64_t timed = 0;
            for (const Process* p : all) {
              of.show(*p, [&](const Process& rank) { return Lines{of, hosts, rank, out, timed}; });
            }
            return timed;
          }};
}

}  // namespace tprof::trace_export
