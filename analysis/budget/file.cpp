#include "budget/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "interpose/format/ledger.h"
#include "read/error.h"
#include "report/table.h"

namespace tprof::budget {
namespace {

using report::Json;

// A value of the file with its position.
struct Part {
  const Json& json;
  std::string where;

  void check(bool as_expected, const std::string& expected) const {
    if (!as_expected) throw std::invalid_argument(where + ": expected " + expected);
  }
  // A misspelt key must not be ignored.
  void has_only(const std::set<std::string>& known) const {
    check(json.is_object(), "an object");
    for (const auto& [key, value] : json.items()) {
      if (!known.contains(key))
        throw std::invalid_argument(fmt::format("{}: unknown key '{}'", where, key));
    }
  }
  bool has(const char* key) const { return json.contains(key); }
  Part at(const char* key) const {
    static const Json kNone;
    return {has(key) ? json[key] : kNone, where + "." + key};
  }
  std::vector<Part> rows() const {
    check(json.is_array(), "an array");
    std::vector<Part> all;
    for (const Json& row : json) all.push_back({row, fmt::format("{}[{}]", where, all.size())});
    return all;
  }
  double number() const {
    check(json.is_number() && json >= 0, "a number of 0 or more");
    return json.get<double>();
  }
  std::uint64_t whole() const {
    check(json.is_number_unsigned(), "a whole number");
    return json.get<std::uint64_t>();
  }
  std::string text(const char* key) const {
    if (!has(key)) return "";
    at(key).check(json[key].is_string(), "a string");
    return json[key].get<std::string>();
  }
  Range range(const char* key) const {
    Range range;
    if (!has(key)) return range;
    const Part of = at(key);
    of.has_only({"min", "max"});
    if (of.has("min")) range.least = of.at("min").number();
    if (of.has("max")) range.most = of.at("max").number();
    return range;
  }
  Bucket bucket() const {
    const auto* found = std::ranges::find(kBuckets, text("bucket"), &BucketInfo::name);
    at("bucket").check(found != std::end(kBuckets), "a bucket such as ALLGATHER");
    return static_cast<Bucket>(found - kBuckets);
  }
};

Limit limit_of(const Part& row) {
  row.has_only({"bucket", "function", "dtype", "calls_per_step", "bytes_per_step", "usual_calls"});
  Limit limit{row.bucket(), row.text("function"), row.text("dtype"), row.range("calls_per_step"),
              row.range("bytes_per_step")};
  if (row.has("usual_calls")) limit.usual = row.at("usual_calls").number();
  return limit;
}

std::map<Bucket, SmallLimit> small_of(const Part& rows) {
  std::map<Bucket, SmallLimit> small;
  for (const Part& row : rows.rows()) {
    row.has_only({"bucket", "calls_per_step", "bytes_per_step"});
    const double bytes = row.range("bytes_per_step").most;
    small[row.bucket()] = {row.range("calls_per_step").most, std::isinf(bytes) ? 0 : bytes};
  }
  return small;
}

// Sizes are in bytes: the smallest of Key's class.
KnownKinds kinds_of(const Part& rows) {
  KnownKinds kinds;
  for (const Part& row : rows.rows()) {
    row.has_only({"bucket", "function", "dtype", "sizes", "more_calls"});
    KnownKind& kind = kinds[{row.bucket(), row.text("function"), row.text("dtype")}];
    if (row.has("more_calls")) kind.more = row.range("more_calls");
    if (!row.has("sizes")) continue;
    for (const Part& bytes : row.at("sizes").rows()) {
      kind.classes.insert(bytes_class(bytes.whole()));
    }
  }
  return kinds;
}

Budget budget_of(const Part& all) {
  all.has_only({"schema", "nranks", "others", "rows", "small", "kinds"});
  all.at("schema").check(all.text("schema") == kFileSchema, kFileSchema);
  const std::string others = all.text("others");
  all.at("others").check(others.empty() || others == "allow" || others == "fail", "allow or fail");
  Budget budget{.others_fail = others == "fail"};
  if (all.has("nranks")) budget.nranks = static_cast<std::int64_t>(all.at("nranks").whole());
  if (all.has("small")) budget.small = small_of(all.at("small"));
  if (all.has("kinds")) budget.kinds = kinds_of(all.at("kinds"));
  for (const Part& row : all.at("rows").rows()) budget.limits.push_back(limit_of(row));
  all.at("rows").check(!budget.limits.empty(), "a row");
  return budget;
}

Json whole(double n) {
  return n == std::floor(n) ? Json(std::llround(n)) : Json(n);
}

Json json_of(const Range& range) {
  Json json = Json::object();
  if (range.least != 0) json["min"] = whole(range.least);
  if (!std::isinf(range.most)) json["max"] = whole(range.most);
  return json;
}

Json json_of(const Key& kind, const KnownKind& known) {
  Json sizes = Json::array();
  for (const std::int64_t c : known.classes) sizes.push_back(c < 0 ? 0 : std::int64_t{1} << c);
  return {{"bucket", bucket_name(kind.bucket)},
          {"function", kind.name},
          {"dtype", kind.dtype},
          {"sizes", sizes},
          {"more_calls", json_of(known.more)}};
}

}  // namespace

Budget read_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw read::BadInput(file, std::strerror(errno));
  try {
    return budget_of({Json::parse(in), "budget"});
  } catch (const Json::parse_error& e) {
    throw read::BadInput(file, e.byte,
                         "expected a budget of tprof budget --write, but this is no JSON");
  } catch (const std::exception& e) {
    throw read::BadInput(file, e.what());
  }
}

void write_file(const Budget& budget, const std::filesystem::path& file) {
  Json rows = Json::array();
  for (const Limit& limit : budget.limits) {
    rows.push_back({{"bucket", bucket_name(limit.bucket)},
                    {"function", limit.function},
                    {"dtype", limit.dtype},
                    {"calls_per_step", json_of(limit.calls)},
                    {"bytes_per_step", json_of(limit.bytes)}});
    if (limit.usual != 0) rows.back()["usual_calls"] = whole(limit.usual);
  }
  Json all = {
      {"schema", kFileSchema}, {"nranks", budget.nranks}, {"others", "fail"}, {"rows", rows}};
  if (budget.small) {
    all["small"] = Json::array();
    for (const auto& [bucket, most] : *budget.small) {
      all["small"].push_back({{"bucket", bucket_name(bucket)},
                              {"calls_per_step", json_of(Range{0, most.calls})},
                              {"bytes_per_step", json_of(Range{0, most.bytes})}});
    }
  }
  if (budget.kinds) {
    all["kinds"] = Json::array();
    for (const auto& [kind, known] : *budget.kinds) all["kinds"].push_back(json_of(kind, known));
  }
  std::FILE* out = std::fopen(file.c_str(), "wxe");
  if (out == nullptr) throw read::not_written(file, errno);
  const std::string text = report::printed(all);
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (std::fclose(out) != 0 || !written) throw read::not_written(file, errno);
}

}  // namespace tprof::budget
