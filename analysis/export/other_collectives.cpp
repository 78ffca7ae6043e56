#include "export/other_collectives.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>

#include "read/json.h"

namespace tprof::trace_export {
namespace {

// PyTorch's names, without underscores, of what is one call of the library. Coalesced ones, which
// are several calls, are not here; nor are sends and receives.
struct Known {
  std::string_view name;
  Bucket kind;
  std::string_view elements;  // which of its arguments has them; empty: none
};
constexpr std::string_view kIn = "In msg nelems";
constexpr std::string_view kOut = "Out msg nelems";
constexpr Known kKnown[] = {
    {"allgather", Bucket::ALLGATHER, kOut},     {"allgatherbase", Bucket::ALLGATHER, kOut},
    {"reducescatter", Bucket::RESHARDING, kIn}, {"reducescatterbase", Bucket::RESHARDING, kIn},
    {"allreduce", Bucket::ALLREDUCE, kIn},      {"allreducebarrier", Bucket::ALLREDUCE, ""},
    {"barrier", Bucket::ALLREDUCE, ""},         {"broadcast", Bucket::BROADCAST, kIn},
    {"broadcastoop", Bucket::BROADCAST, kIn},   {"reduce", Bucket::REDUCE, kIn},
    {"reduceoop", Bucket::REDUCE, kIn},
};

const Known* known(std::string_view name) {
  std::string plain(name);
  std::erase(plain, '_');
  const auto* found = std::ranges::find(kKnown, plain, &Known::name);
  return found == std::end(kKnown) ? nullptr : found;
}

std::uint64_t elements_of(const read::object& args, const Known& what) {
  std::uint64_t elements = 0;
  std::string_view dtype;
  if (what.elements.empty() || args.at_key(what.elements).get(elements) != simdjson::SUCCESS) {
    return 0;
  }
  // The library gets each complex number as two elements, so its count is another one.
  const bool has_dtype = args.at_key("dtype").get(dtype) == simdjson::SUCCESS;
  return has_dtype && dtype.starts_with("Complex") ? 0 : elements;
}

}  // namespace

void OtherCollectives::add(std::string_view thread, std::string_view name, std::string_view args,
                           std::int64_t begin_ns, std::int64_t end_ns) {
  constexpr std::string_view kRange = "\"nccl:";
  if (name.starts_with(kRange)) {
    name.remove_prefix(kRange.size());
    const Known* what = known(name.substr(0, name.find('"')));
    if (what != nullptr) {
      ranges_.push_back({std::string(thread), {what->kind, 0, begin_ns, end_ns}});
    }
    return;
  }
  if (name != "\"record_param_comms\"") return;
  simdjson::dom::parser parser;
  read::object o;
  std::string_view said;
  if (parser.parse(args.data(), args.size()).get(o) != simdjson::SUCCESS) return;
  if (o.at_key("Collective name").get(said) != simdjson::SUCCESS) return;
  if (const Known* what = known(said)) {
    records_.push_back(
        {std::string(thread), {what->kind, elements_of(o, *what), begin_ns, end_ns}});
  }
}

std::vector<align::Stay> OtherCollectives::innermost(std::vector<Mark> marks) {
  // If two begin together, the inner one comes second.
  std::ranges::sort(marks, {}, [](const Mark& m) {
    return std::tuple(m.thread, m.stay.begin_ns, -m.stay.end_ns);
  });
  std::vector<align::Stay> all;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const bool encloses = i + 1 < marks.size() && marks[i + 1].thread == marks[i].thread &&
                          marks[i + 1].stay.end_ns <= marks[i].stay.end_ns;
    if (!encloses) all.push_back(marks[i].stay);
  }
  std::ranges::sort(all, {}, &align::Stay::begin_ns);
  return all;
}

std::vector<align::Stay> OtherCollectives::all() && {
  return innermost(std::move(records_.empty() ? ranges_ : records_));
}

}  // namespace tprof::trace_export
