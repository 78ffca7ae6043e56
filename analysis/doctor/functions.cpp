#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "doctor/examine.h"
#include "read/error.h"
#include "text/text.h"

namespace tprof::doctor {
namespace {

using text::printable;

struct WrappedFunction {
  std::string library;  // "nccl", "cudart", "cuda" or "cupti"
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

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool is_per_thread_twin(std::string_view name) {
  return name.ends_with("_ptsz") || name.ends_with("_ptds");
}
constexpr unsigned kTwinsSince = 7000;  // CUDA 7.0 brought the per-thread default stream

// 12080 is CUDA's number for 12.8, 22800 NCCL's for 2.28. A twin has the number of its function.
std::string version(const WrappedFunction& f, std::string_view text) {
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  if (is_per_thread_twin(f.name)) number = std::max(number, kTwinsSince);
  return f.library == "nccl" ? fmt::format("{}.{}", number / 10000, number % 10000 / 100)
                             : fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

std::string_view title(std::string_view library) {
  if (library == "nccl") return "NCCL";
  if (library == "cupti") return "CUPTI";
  return library == "cudart" ? "CUDA runtime" : "CUDA driver";
}

std::string counts_as(const WrappedFunction& f) {
  if (f.buckets.empty()) return "nothing: it is followed";
  return fmt::format("{}", fmt::join(f.buckets, ", "));
}

std::string elements(const WrappedFunction& f) {
  if (f.elements == "count_times_ranks") return "count x ranks";
  return f.elements == "bytes" ? "bytes / element size" : f.elements;
}

FunctionList functions_of(const Library& library) {
  const std::string_view text = library.elf.function_list;
  FunctionList list;
  std::map<std::string, std::string, std::less<>> since;
  for (const std::string_view line : split(text.substr(0, text.find('\0')), '\n')) {
    const std::vector<std::string_view> f = split(line, '\t');
    if (f.size() >= 3 && f[0] == "wrapped") {
      WrappedFunction w{std::string(f[1]), std::string(f[2]), {}, {}, {}, {}};
      for (const std::string_view bucket : split(f.size() > 3 ? f[3] : "", ',')) {
        w.buckets.emplace_back(bucket);
      }
      if (f.size() > 4) w.elements = f[4];
      if (f.size() > 5) w.needs = f[5];
      list.wrapped.push_back(std::move(w));
    } else if (f.size() == 3 && f[0] == "since") {
      since.emplace(f[1], f[2]);
    } else if (f.size() == 4 && f[0] == "not") {
      list.left_out.push_back({std::string(f[1]), std::string(f[2]), std::string(f[3])});
    } else {
      throw read::BadInput(library.path, "expected a list of functions of this version in it");
    }
  }
  if (list.wrapped.empty()) {
    throw read::BadInput(library.path,
                         "expected a libtprof.so that lists its functions: it is older");
  }
  for (WrappedFunction& w : list.wrapped) {
    const auto found = since.find(w.name);
    if (found != since.end()) w.since = version(w, found->second);
  }
  return list;
}

std::string to_text(const FunctionList& list, std::size_t width) {
  std::string out;
  for (const std::string_view library : {"nccl", "cudart", "cuda", "cupti"}) {
    using enum text::Table::Align;
    text::Table table(
        {{"function", left}, {"since", left}, {"counts as", left}, {"elements", left}});
    std::size_t rows = 0;
    std::string needs;
    for (const WrappedFunction& f : list.wrapped) {
      if (f.library != library) continue;
      ++rows;
      needs = f.needs;
      table.row({printable(f.name), f.since.empty() ? "?" : f.since, counts_as(f), elements(f)});
    }
    out += fmt::format("{}{}: {} functions{}\n", out.empty() ? "" : "\n", title(library), rows,
                       needs.empty() ? "" : ", passed through without " + printable(needs));
    constexpr std::size_t kElements = 3;
    out += table.str(width, {kElements}, true);
    const std::vector<std::size_t> shown = table.shown(width, {kElements});
    if (std::ranges::find(shown, kElements) == shown.end()) {
      out += "  elements: bytes / element size\n";
    }
  }
  out += "\nNot covered\n";
  using enum text::Table::Align;
  text::Table table({{"function", left}, {"why", left}});
  for (const LeftOutFunction& f : list.left_out)
    table.row({printable(f.name), printable(f.reason)});
  return out + table.str(width, {}, true);
}

std::string to_json(const FunctionList& list) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& s) { return s.empty() ? Json() : Json(s); };
  Json j;
  j["schema"] = "tprof-coverage/1";
  Json& functions = j["functions"] = Json::array();
  for (const WrappedFunction& f : list.wrapped) {
    functions.push_back({{"library", f.library},
                         {"name", f.name},
                         {"since", or_null(f.since)},
                         {"buckets", f.buckets},
                         {"elements", or_null(f.elements)},
                         {"needs", or_null(f.needs)}});
  }
  Json& left_out = j["not_covered"] = Json::array();
  for (const LeftOutFunction& f : list.left_out) {
    left_out.push_back({{"library", f.library}, {"name", f.name}, {"reason", f.reason}});
  }
  return j.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string coverage(const Library& library, bool json, std::size_t width) {
  const FunctionList list = functions_of(library);
  return json ? to_json(list) : to_text(list, width);
}

}  // namespace tprof::doctor
