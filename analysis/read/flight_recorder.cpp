#include "read/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "interpose/format/ledger.h"
#include "read/error.h"
#include "read/json.h"
#include "read/lines.h"
#include "read/pickle.h"
#include "text/text.h"

namespace tprof::read {
namespace {

constexpr std::size_t kLargestDump = std::size_t{512} << 20;
constexpr std::size_t kFirstBytes = std::size_t{1} << 16;
constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::string_view kDigits = "0123456789";

std::string bytes_of(const std::filesystem::path& file) {
  Input input(file);
  std::string bytes;
  for (std::size_t got = 1; got != 0;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + (std::size_t{1} << 20));
    got = input.read(bytes.data() + before, bytes.size() - before);
    bytes.resize(before + got);
    if (bytes.size() > kLargestDump) throw BadInput(file, "larger than any Flight Recorder dump");
  }
  return bytes;
}

std::optional<std::int64_t> rank_of(const std::filesystem::path& file) {
  const std::string stem = file.filename().replace_extension().string();
  const auto digits = stem.substr(stem.find_last_not_of(kDigits) + 1);
  const auto rank = text::number<std::int64_t>(digits);
  return rank && *rank < kMostRanks ? rank : std::nullopt;
}

// PyTorch has variants of each operation. Their names begin with the same word, apart from case and
// underscores.
struct Operation {
  std::string_view begins;
  std::string_view function;
  Bucket bucket;
  bool by_output = false;  // its output has the size that NCCL counts
  bool uneven = false;     // its size may differ by rank
};
constexpr Operation kOperations[] = {
    {"allgather", "ncclAllGather", Bucket::ALLGATHER},
    {"reducescatter", "ncclReduceScatter", Bucket::RESHARDING, true},
    {"allreduce", "ncclAllReduce", Bucket::ALLREDUCE},
    {"alltoall", "ncclAlltoAll", Bucket::ALLTOALL, false, true},
    {"broadcast", "ncclBroadcast", Bucket::BROADCAST},
    {"reduce", "ncclReduce", Bucket::REDUCE},
    {"gather", "ncclGather", Bucket::OTHER_COLL},
    {"scatter", "ncclScatter", Bucket::OTHER_COLL, true},
};

struct Name {
  std::string_view theirs;
  std::string_view ours;
};
constexpr Name kTypes[] = {
    {"BFloat16", "bfloat16"},
    {"Float", "float32"},
    {"Half", "float16"},
    {"Double", "float64"},
    {"Int", "int32"},
    {"Long", "int64"},
    {"Byte", "uint8"},
    {"Char", "int8"},
    {"Bool", "uint8"},
    {"Float8_e4m3fn", "float8e4m3"},
    {"Float8_e5m2", "float8e5m2"},
};

// Returns a number, which may be written as digits in a string.
std::optional<std::int64_t> number_in(const Fields& o, std::string_view key) {
  const auto e = o.find(key);
  if (e && e->is_string()) return text::number<std::int64_t>(o.get<std::string_view>(key));
  return o.get_or<std::optional<std::int64_t>>(key);
}

// Returns the text without characters that would need an escape in quotes.
std::string word(std::string_view text) {
  std::string kept;
  for (const char c : text.substr(0, 64)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    kept += plain ? c : '_';
  }
  return kept;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file) {
    std::string bytes = bytes_of(file);
    if (!bytes.starts_with('{')) bytes = json_of_pickle(file, bytes);
    simdjson::dom::element dump;
    if (const auto error = parser_.parse(bytes).get(dump); error != simdjson::SUCCESS) {
      throw BadInput(file, std::string("expected JSON: ") + simdjson::error_message(error));
    }
    dump_ = dump.get_object().value();
  }

  Trace read() {
    const auto rank = rank_of(file_);
    if (!rank) {
      throw BadInput(file_,
                     "the name of a Flight Recorder dump tells its rank, as in nccl_trace_rank_3");
    }
    const std::string_view version = dump_.get_or<std::string_view>("version");
    if (!dump_.has("pg_config") || !version.starts_with("2.")) {
      throw BadInput(file_, fmt::format("expected a Flight Recorder dump of formats 2.4 to 2.10{}",
                                        version.empty() ? "" : ", this is " + word(version)));
    }
    process_.file = file_.string();
    process_.line_pid = process_.header.pid = process_.header.rank.emplace(*rank);
    process_.header.boot_id = fmt::format("dump of rank {}", *rank);  // it has its own clock
    process_.end = End::dumped;
    process_.footer.emplace();
    process_.ledger.emplace();
    read_groups();
    read_entries();
    read_status();
    Trace trace{{file_, 0, "[\n" + std::move(lines_) + "]\n"}, {}, false, true};
    trace.processes.push_back(std::move(process_));
    return trace;
  }

 private:
  struct Group {
    std::int64_t comm = 0;
    std::optional<std::int64_t> id{};           // its id in entries and in the status
    std::uint64_t made = 0;                     // collectives, according to entries
    std::uint64_t started = 0;                  // collectives that the device has begun
    std::optional<std::uint64_t> first_left{};  // the first unended collective
    bool entries = false;
    bool messages = false;
    std::set<std::uint64_t> seen{};                                 // collectives with a line
    std::map<std::pair<std::int64_t, bool>, std::uint64_t> left{};  // messages that have not ended
  };

  void read_groups() {
    for (const auto [name, value] : dump_.get<object>("pg_config")) {
      const Fields about = value.get_object().value();
      const std::vector<std::int64_t> ranks = ranks_in(about);
      const auto me = std::ranges::find(ranks, *process_.header.rank);
      if (me == ranks.end()) continue;
      Comm c;
      c.comm = static_cast<std::int64_t>(groups_.size()) + 1;
      std::uint64_t hash = std::hash<std::string_view>()(name);
      for (const std::int64_t rank : ranks) hash = mix64(hash ^ static_cast<std::uint64_t>(rank));
      c.id = fmt::format("{:016x}", hash);
      const std::string_view what = about.get_or<std::string_view>("desc");
      if (!what.empty() && what != "undefined") c.name = std::string(what);
      c.nranks = static_cast<std::int64_t>(ranks.size());
      c.rank = me - ranks.begin();
      auto& world = process_.header.world_size;
      world = std::max(world.value_or(0), c.nranks);
      groups_.emplace(name, Group{.comm = c.comm});
      process_.comms.emplace(c.comm, std::move(c));
    }
  }

  // "[0, 1, 5]", or a list.
  std::vector<std::int64_t> ranks_in(const Fields& group) const {
    std::vector<std::int64_t> ranks;
    const auto e = group.find("ranks");
    const std::string all = e ? simdjson::minify(*e) : "";
    for (std::size_t at = 0; (at = all.find_first_of(kDigits, at)) != all.npos;) {
      const std::size_t end = std::min(all.find_first_not_of(kDigits, at), all.size());
      ranks.push_back(
          text::number<std::int64_t>(std::string_view(all).substr(at, end - at)).value_or(-1));
      at = end;
    }
    const bool good = std::ranges::all_of(
        ranks, [](std::int64_t rank) { return rank >= 0 && rank < kMostRanks; });
    if (!good) throw BadInput(file_, "a group with an impossible rank");
    return ranks;
  }

  static std::int64_t number(const Fields& entry, std::string_view key) {
    std::int64_t n = 0;
    entry.may_in({0, kLatestNs}, key, n);
    return n;
  }

  void read_entries() {
    if (!dump_.has("entries")) return;
    std::int64_t first = kLatestNs;
    dump_.each("entries",
               [&](const Fields& e) { first = std::min(first, number(e, "time_created_ns")); });
    process_.header.base_time_ns = process_.header.start_ns = first == kLatestNs ? 0 : first;
    std::set<Batch> seen;
    dump_.each("entries", [&](const Fields& e) {
      const Batch batch = batch_of(e);
      const bool of_all = e.get_or<std::string_view>("profiling_name") == "nccl:coalesced";
      if (of_all) {
        const auto number = static_cast<std::int64_t>(batches_.size()) + 1;
        batches_.try_emplace(batch, EndOfBatch{number}).first->second.ended = is_ended(e);
      }
      if (of_all || !seen.insert(batch).second) batched_.insert({get<0>(batch), get<1>(batch)});
    });
    dump_.each("entries", [&](const Fields& e) { read_entry(e); });
  }

  // Calls made together share one number of their group.
  using Batch = std::tuple<std::string_view, bool, std::int64_t>;
  struct EndOfBatch {
    std::int64_t number = 0;  // in order of appearance
    bool ended = false;       // on the device
  };
  static Batch batch_of(const Fields& e) {
    const bool message = e.get_or<bool>("is_p2p");
    return {e.get<array>("process_group").at(0).get_string().value(), message,
            number(e, message ? "p2p_seq_id" : "collective_seq_id")};
  }
  // Returns the number of a call's batch; 0: none.
  std::int64_t of_batch(const Fields& e) const {
    const auto batch = batches_.find(batch_of(e));
    return batch == batches_.end() ? 0 : batch->second.number;
  }
  static bool is_ended(const Fields& e) {
    return e.get_or<std::string_view>("state") == "completed" ||
           number(e, "time_discovered_completed_ns") != 0;
  }

  void read_entry(const Fields& e) {
    const auto found = groups_.find(e.get<array>("process_group").at(0).get_string().value());
    if (found == groups_.end()) return;
    Group& group = found->second;
    group.id = number_in(e, "pg_id");
    group.entries = true;
    const auto seq = static_cast<std::uint64_t>(number(e, "collective_seq_id"));
    const auto message = e.get_or<bool>("is_p2p");
    // PyTorch marks only the batch's own entry as ended, and a dump of active entries then leaves
    // that out.
    const Batch of = batch_of(e);
    const auto batch = batches_.find(of);
    const bool batched = message && batched_.contains({get<0>(of), get<1>(of)});
    const bool ended = is_ended(e) || (batch == batches_.end() ? batched : batch->second.ended);
    group.made = std::max(group.made, seq);
    std::int64_t& until = process_.ledger->ts_ns;
    const std::int64_t created = number(e, "time_created_ns");
    for (const std::string_view key :
         {"time_created_ns", "time_discovered_started_ns", "time_discovered_completed_ns"}) {
      until = std::max(until, number(e, key) - process_.header.base_time_ns);
    }
    if (message) {
      group.messages = true;
      if (!ended) add_message(e, group, created);
      return;
    }
    if (seq == 0) return;
    const bool started = e.get_or<std::string_view>("state") == "started";
    if (started || ended) group.started = std::max(group.started, seq);
    if (!ended) group.first_left = std::min(group.first_left.value_or(seq - 1), seq - 1);
    // Calls made together have one number, and the first stands for all of them.
    if (group.seen.insert(seq - 1).second) add_collective(e, group, seq - 1, created);
  }

  // "nccl:send 0->3" and "nccl:recv 0<-3" have the ranks in the group.
  void add_message(const Fields& e, Group& group, std::int64_t created) {
    const std::string_view what = e.get_or<std::string_view>("profiling_name");
    const std::string_view name = what.substr(what.find(':') + 1);
    const bool send = name.starts_with("send ");
    const auto peer = text::number<std::int64_t>(name.substr(name.find_last_not_of(kDigits) + 1));
    if ((!send && !name.starts_with("recv ")) || !peer || *peer >= kMostRanks) return;
    add_line(e, group, send ? "ncclSend" : "ncclRecv", Bucket::P2P,
             group.left[std::pair(*peer, send)]++, created, "input", peer, of_batch(e));
  }

  void add_collective(const Fields& e, const Group& group, std::uint64_t seq,
                      std::int64_t created) {
    const std::string_view what = e.get_or<std::string_view>("profiling_name");
    const std::string name = word(what.substr(what.find(':') + 1));
    std::string plain;
    for (const char c : name) {
      if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    const auto* known = std::ranges::find_if(
        kOperations, [&](const Operation& o) { return plain.starts_with(o.begins); });
    if (known == std::end(kOperations)) {
      return add_line(e, group, name, Bucket::OTHER_COLL, seq, created, "input", std::nullopt);
    }
    add_line(e, group, known->function, known->bucket, seq, created,
             known->uneven      ? ""
             : known->by_output ? "output"
                                : "input",
             std::nullopt);
  }

  // `side`: the field with the relevant size; empty: none.
  void add_line(const Fields& e, const Group& group, std::string_view function, Bucket bucket,
                std::uint64_t seq, std::int64_t created, const std::string& side,
                const std::optional<std::int64_t>& peer, std::int64_t group_number = 0) {
    std::uint64_t count = 0;
    std::string type;
    if (e.has(side + "_sizes") && e.has(side + "_dtypes")) {
      for (const element tensor : e.get<array>(side + "_sizes")) {
        std::uint64_t elements = 1;
        const array sizes = tensor.get_array().value();
        for (const element size : sizes) {
          if (__builtin_mul_overflow(elements, size.get_uint64().value(), &elements)) {
            throw Malformed("a tensor of an impossible size");
          }
        }
        count = saturated_sum(count, elements);
      }
      for (const element one : e.get<array>(side + "_dtypes")) {
        const std::string_view theirs = one.get_string().value();
        const auto* ours = std::ranges::find(kTypes, theirs, &Name::theirs);
        type = ours == std::end(kTypes) ? word(theirs) : std::string(ours->ours);
        break;
      }
    }
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, std::max<std::uint64_t>(element_size(type), 1), &bytes)) {
      bytes = kSaturated;
    }
    const std::int64_t ts = created - process_.header.base_time_ns;
    const std::int64_t thread = number_in(e, "thread_id").value_or(0);
    lines_ += fmt::format(
        R"({{"name":"{}","cat":"{}","ph":"X","pid":{},"tid":{},"ts":{}.{:03},"dur":0.000,)"
        R"("args":{{"comm":{},"seq":{},"count":{},"dtype":"{}","bytes":{}{}{},"stream":null}}}},)"
        "\n",
        function, bucket_name(bucket), process_.line_pid, thread & INT32_MAX, ts / 1000, ts % 1000,
        group.comm, seq, count, type, bytes, peer ? fmt::format(",\"peer\":{}", *peer) : "",
        group_number != 0 ? fmt::format(",\"group\":{}", group_number) : "");
  }

  // Groups without entries only have a status. Both tables are in the order in which groups were
  // created, keyed by numbers as text.
  void read_status() {
    std::map<std::int64_t, Fields> by_id;
    if (dump_.has("pg_status")) {
      for (const auto [id, of_group] : dump_.get<object>("pg_status")) {
        by_id[text::number<std::int64_t>(id).value_or(0)] = of_group.get_object().value();
      }
    }
    std::map<std::int64_t, Group*> in_order;
    for (auto& [name, group] : groups_) {
      if (const auto made = text::number<std::int64_t>(name)) in_order[*made] = &group;
    }
    if (in_order.size() == by_id.size() && in_order.size() == groups_.size()) {
      auto next = by_id.begin();
      for (const auto& [made, group] : in_order) {
        const std::int64_t id = (next++)->first;
        if (!group->id) group->id = id;
      }
    }
    // If groups with known ids account for all of these, the others made no call.
    const bool all_known =
        dump_.has("pg_status") && std::ranges::all_of(by_id, [&](const auto& id) {
          return std::ranges::any_of(groups_,
                                     [&](const auto& g) { return g.second.id == id.first; });
        });
    for (auto& [name, group] : groups_) {
      Collectives made{.comm = group.comm, .count = group.made, .messages = group.messages};
      if (!group.entries) {
        const auto known = group.id ? by_id.find(*group.id) : by_id.end();
        if (known == by_id.end() && !all_known) continue;
        if (known != by_id.end()) {
          made.count = of_status(known->second, "last_enqueued_collective");
          made.ended = of_status(known->second, "last_completed_collective");
        }
        made.by_status = true;
      }
      made.started = group.started;
      if (!made.ended || group.entries) made.ended = group.first_left.value_or(made.count);
      process_.ledger->collectives.push_back(std::move(made));
    }
  }

  static std::uint64_t of_status(const Fields& status, std::string_view key) {
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(number_in(status, key).value_or(0), 0));
  }

  std::filesystem::path file_;
  simdjson::dom::parser parser_;  // owns the values
  Fields dump_;
  Process process_;
  std::map<std::string, Group, std::less<>> groups_;  // by name
  std::map<Batch, EndOfBatch> batches_;
  std::set<std::pair<std::string_view, bool>> batched_;  // groups that make batches
  std::string lines_;
};

}  // namespace

bool is_called_like_a_dump(const std::filesystem::path& file) {
  constexpr std::string_view kBefore = "_trace_rank_";
  const std::string name = file.filename().string();
  const auto digits = name.find_last_not_of(kDigits) + 1;
  return digits != name.size() && std::string_view(name).substr(0, digits).ends_with(kBefore);
}

bool begins_like_a_dump(std::string_view bytes) {
  const std::string_view first = bytes.substr(0, kFirstBytes);
  const auto has = [&](std::string_view key) { return first.find(key) != std::string_view::npos; };
  if (first.starts_with('\x80')) return has("pg_config") || has("comm_lib_version");
  return first.starts_with('{') && (has("\"pg_config\"") || has("\"collective_seq_id\""));
}

Trace load_dump(const std::filesystem::path& file) {
  try {
    return Reader(file).read();
  } catch (const Malformed& e) {
    throw BadInput(file, e.what());
  } catch (const simdjson::simdjson_error& e) {
    throw BadInput(file, fmt::format("no valid Flight Recorder dump: {}", e.what()));
  }
}

void leave_out_numbers_of_messages(std::vector<Trace>& traces) {
  const auto key = [](const Process& p, const Collectives& c) {
    const Comm& comm = p.comms.at(c.comm);
    return comm.name ? comm.name->str() : comm.id.str();
  };
  std::set<std::string> with_messages;
  const auto each = [&](const auto& see) {
    for (Trace& trace : traces) {
      for (Process& p : trace.processes) {
        if (p.end == End::dumped) see(p);
      }
    }
  };
  std::map<text::Kept, std::uint64_t> ended;  // by communicator, if only the status tells
  each([&](const Process& p) {
    for (const Collectives& c : p.ledger->collectives) {
      if (c.messages) with_messages.insert(key(p, c));
      std::uint64_t& most = ended[p.comms.at(c.comm).id];
      if (c.by_status) most = std::max(most, c.ended.value_or(0));
    }
  });
  each([&](const Process& p) {
    for (const Collectives& c : p.ledger->collectives) {
      const bool ahead = c.by_status && ended[p.comms.at(c.comm).id] > c.count;
      if (ahead) with_messages.insert(key(p, c));
    }
  });
  each([&](Process& p) {
    std::erase_if(p.ledger->collectives, [&](const Collectives& c) {
      return c.by_status && with_messages.contains(key(p, c));
    });
  });
}

}  // namespace tprof::read
