#include "export/other_trace.h"

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

std::optional<Mark> mark_of(std::string_view name, std::string_view args) {
  constexpr std::string_view kRange = "\"nccl:";
  simdjson::dom::parser parser;
  read::object o;
  std::string_view said;
  const bool range = name.starts_with(kRange);
  if (range) {
    said = name.substr(kRange.size(), name.find('"', kRange.size()) - kRange.size());
  } else if (name != "\"record_param_comms\"" ||
             parser.parse(args.data(), args.size()).get(o) != simdjson::SUCCESS ||
             o.at_key("Collective name").get(said) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  const Known* what = known(said);
  if (what == nullptr) return std::nullopt;
  return Mark{{}, {what->kind, range ? 0 : elements_of(o, *what)}, range};
}

std::vector<align::Stay> innermost(std::vector<Mark> marks) {
  if (!std::ranges::all_of(marks, &Mark::range))
    std::erase_if(marks, [](const Mark& m) { return m.range; });
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

}  // namespace tprof::trace_export
