#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "doctor/examine.h"
#include "read/error.h"
#include "report/table.h"
#include "text/text.h"

namespace tprof::doctor {
namespace {

using report::Column;
using report::or_unknown;
using report::Unit;

struct WrappedFunction {
  std::string library;  // "nccl", "nccl_ep", "cudart", "cuda" or "cupti"
  std::string name;
  std::string since;                 // version of the library, "12.8"; empty: not known
  std::vector<std::string> buckets;  // of its calls; empty: it only helps to count others
  std::string elements;              // "count", "count_times_ranks" or "bytes"; empty: none
  std::string needs;                 // setting without which it is passed through
};

struct LeftOutFunction {
  std::string library;
  std::string name;
  std::string reason;
};

struct FunctionList {
  std::vector<WrappedFunction> wrapped;
  std::vector<LeftOutFunction> left_out;
};

bool is_per_thread_twin(std::string_view name) {
  return name.ends_with("_ptsz") || name.ends_with("_ptds");
}
constexpr unsigned kTwinsSince = 7000;  // CUDA 7.0 brought the per-thread default stream

// 12080 is CUDA's number for 12.8, 22800 NCCL's for 2.28. A twin has the number of its function.
std::string version(const WrappedFunction& f, std::string_view text) {
  unsigned number = text::number<unsigned>(text).value_or(0);
  if (is_per_thread_twin(f.name)) number = std::max(number, kTwinsSince);
  return f.library.starts_with("nccl") ? fmt::format("{}.{}", number / 10000, number % 10000 / 100)
                                       : fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

std::string_view title(std::string_view library) {
  if (library == "nccl") return "NCCL";
  if (library == "nccl_ep") return "NCCL EP";
  if (library == "cupti") return "CUPTI";
  return library == "cudart" ? "CUDA runtime" : "CUDA driver";
}

std::vector<Column<WrappedFunction>> columns() {
  using F = WrappedFunction;
  return {{nullptr, "library", Unit::text, &F::library},
          {"function", "name", Unit::text, &F::name},
          {"since", "since", Unit::text, [](const F& f) { return or_unknown(f.since); }},
          {"counts as", nullptr, Unit::text,
           [](const F& f) {
             return f.buckets.empty() ? std::string("nothing: it is followed")
                                      : fmt::format("{}", fmt::join(f.buckets, ", "));
           }},
          {nullptr, "buckets", Unit::text, [](const F& f) { return report::Json(f.buckets); }},
          {"elements", nullptr, Unit::text,
           [](const F& f) {
             return f.elements == "count_times_ranks" ? "count x ranks"
                    : f.elements == "bytes"           ? "bytes / element size"
                                                      : f.elements;
           },
           report::Show::if_room},
          {nullptr, "elements", Unit::text, [](const F& f) { return or_unknown(f.elements); }},
          {nullptr, "needs", Unit::text, [](const F& f) { return or_unknown(f.needs); }}};
}

std::vector<Column<LeftOutFunction>> left_out_columns() {
  using F = LeftOutFunction;
  return {{nullptr, "library", Unit::text, &F::library},
          {"function", "name", Unit::text, &F::name},
          {"why", "reason", Unit::text, &F::reason}};
}

FunctionList functions_of(const Library& library) {
  std::string_view text = library.elf.function_list;
  text = text.substr(0, text.find_last_not_of(std::string_view("\n\0", 2)) + 1);
  FunctionList list;
  for (const std::string_view line : text::split(text, '\n')) {
    const std::vector<std::string_view> f = text::split(line, '\t');
    if (f.size() == 6) {
      WrappedFunction& w = list.wrapped.emplace_back();
      w.library = f[0];
      w.name = f[1];
      for (const std::string_view bucket : text::split(f[2], ',')) {
        if (!bucket.empty()) w.buckets.emplace_back(bucket);
      }
      w.elements = f[3];
      w.needs = f[4];
      w.since = version(w, std::string(f[5]));
    } else if (f.size() == 3) {
      list.left_out.push_back({std::string(f[0]), std::string(f[1]), std::string(f[2])});
    } else {
      throw read::BadInput(library.path, "expected a list of functions of this version in it");
    }
  }
  if (list.wrapped.empty()) {
    throw read::BadInput(library.path,
                         "expected a libtprof.so that lists its functions: it is older");
  }
  return list;
}

std::string to_text(const FunctionList& list, std::size_t width) {
  const report::Room room = {.width = width, .breaks = true, .tells_columns = true};
  std::string out;
  for (const std::string_view library : {"nccl", "nccl_ep", "cudart", "cuda", "cupti"}) {
    std::vector<WrappedFunction> functions;
    std::ranges::copy_if(list.wrapped, std::back_inserter(functions),
                         [&](const WrappedFunction& f) { return f.library == library; });
    const std::string needs = functions.empty() ? "" : functions.back().needs;
    out += fmt::format("{}: {} functions{}\n", title(library), functions.size(),
                       needs.empty() ? "" : ", passed through without " + text::printable(needs)) +
           report::table_text(columns(), functions, room) + "\n";
  }
  return out + "Not covered\n" + report::table_text(left_out_columns(), list.left_out, room);
}

std::string to_json(const FunctionList& list) {
  const report::Json json = {
      {"schema", "tprof-coverage/1"},
      {"functions", report::table_json(columns(), list.wrapped)},
      {"not_covered", report::table_json(left_out_columns(), list.left_out)}};
  return json.dump(1, ' ', true, report::Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string coverage(const Library& library, bool json, std::size_t width) {
  const FunctionList list = functions_of(library);
  return json ? to_json(list) : to_text(list, width);
}

}  // namespace tprof::doctor
