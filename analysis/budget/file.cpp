#include "budget/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "read/not_written.h"
#include "report/json.h"

namespace tprof::budget {
namespace {

using report::Json;

// A misspelt key must not be a limit that is never looked at.
void only_keys(const Json& o, const std::set<std::string>& known, const std::string& where) {
  if (!o.is_object()) throw std::invalid_argument(where + ": expected an object");
  for (const auto& [key, value] : o.items()) {
    if (!known.contains(key))
      throw std::invalid_argument(fmt::format("{}: unknown key '{}'", where, key));
  }
}

double number_of(const Json& o, const char* key, const std::string& where) {
  const Json& n = o[key];
  if (n.is_number() && n >= 0) return n.get<double>();
  throw std::invalid_argument(fmt::format("{}.{}: expected a number of 0 or more", where, key));
}

Range range_of(const Json& row, const char* key, const std::string& where) {
  Range range;
  if (!row.contains(key)) return range;
  only_keys(row[key], {"min", "max"}, where + "." + key);
  for (const auto& [name, to] : {std::pair("min", &range.least), std::pair("max", &range.most)}) {
    if (row[key].contains(name)) *to = number_of(row[key], name, where + "." + key);
  }
  return range;
}

std::string text_of(const Json& o, const char* key, const std::string& where) {
  if (!o.contains(key)) return "";
  if (o[key].is_string()) return o[key].get<std::string>();
  throw std::invalid_argument(where + "." + key + ": expected a string");
}

Bucket bucket_of(const Json& row, const std::string& where) {
  const std::string name = text_of(row, "bucket", where);
  const auto* bucket = std::ranges::find(kBuckets, name, &BucketInfo::name);
  if (bucket != std::end(kBuckets)) return static_cast<Bucket>(bucket - kBuckets);
  throw std::invalid_argument(where + ".bucket: expected a bucket such as ALLGATHER");
}

Limit limit_of(const Json& row, const std::string& where) {
  only_keys(row, {"bucket", "function", "dtype", "calls_per_step", "bytes_per_step", "usual_calls"},
            where);
  Limit limit{bucket_of(row, where), text_of(row, "function", where), text_of(row, "dtype", where),
              range_of(row, "calls_per_step", where), range_of(row, "bytes_per_step", where)};
  if (row.contains("usual_calls")) limit.usual = number_of(row, "usual_calls", where);
  return limit;
}

std::map<Bucket, SmallLimit> small_of(const Json& rows) {
  if (!rows.is_array()) throw std::invalid_argument("budget.small: expected rows");
  std::map<Bucket, SmallLimit> small;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string where = fmt::format("small[{}]", i);
    only_keys(rows[i], {"bucket", "calls_per_step", "bytes_per_step"}, where);
    SmallLimit& most = small[bucket_of(rows[i], where)];
    most.calls = range_of(rows[i], "calls_per_step", where).most;
    const double bytes = range_of(rows[i], "bytes_per_step", where).most;
    most.bytes = std::isinf(bytes) ? 0 : bytes;
  }
  return small;
}

// A size in bytes as Key's class, of which it is the least.
std::int64_t class_of(const Json& bytes, const std::string& where) {
  if (bytes.is_number_unsigned()) {
    return static_cast<std::int64_t>(std::bit_width(bytes.get<std::uint64_t>())) - 1;
  }
  throw std::invalid_argument(where + ".sizes: expected whole numbers of bytes");
}

KnownKinds kinds_of(const Json& rows) {
  if (!rows.is_array()) throw std::invalid_argument("budget.kinds: expected rows");
  KnownKinds kinds;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string where = fmt::format("kinds[{}]", i);
    const Json& row = rows[i];
    only_keys(row, {"bucket", "function", "dtype", "sizes", "more_calls"}, where);
    KnownKind& kind = kinds[{bucket_of(row, where), text_of(row, "function", where),
                             text_of(row, "dtype", where)}];
    if (row.contains("more_calls")) kind.more = range_of(row, "more_calls", where);
    const Json sizes = row.value("sizes", Json::array());
    if (!sizes.is_array()) throw std::invalid_argument(where + ".sizes: expected sizes");
    for (const Json& bytes : sizes) kind.classes.insert(class_of(bytes, where));
  }
  return kinds;
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

Json json_of(const Kind& kind, const KnownKind& known) {
  Json sizes = Json::array();
  for (const std::int64_t c : known.classes) sizes.push_back(c < 0 ? 0 : std::int64_t{1} << c);
  return {{"bucket", bucket_name(kind.bucket)},
          {"function", kind.function},
          {"dtype", kind.dtype},
          {"sizes", sizes},
          {"more_calls", json_of(known.more)}};
}

}  // namespace

Budget read_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw read::BadInput(file, std::strerror(errno));
  try {
    const Json all = Json::parse(in);
    only_keys(all, {"schema", "nranks", "others", "rows", "small", "kinds"}, "budget");
    if (text_of(all, "schema", "budget") != kFileSchema) {
      throw std::invalid_argument(fmt::format("expected schema {}", kFileSchema));
    }
    const std::string others = text_of(all, "others", "budget");
    if (!others.empty() && others != "allow" && others != "fail") {
      throw std::invalid_argument("budget.others: expected allow or fail");
    }
    Budget budget{.others_fail = others == "fail"};
    if (all.contains("nranks")) {
      if (!all["nranks"].is_number_unsigned()) {
        throw std::invalid_argument("budget.nranks: expected a whole number of ranks");
      }
      budget.nranks = all["nranks"].get<std::int64_t>();
    }
    if (all.contains("small")) budget.small = small_of(all["small"]);
    if (all.contains("kinds")) budget.kinds = kinds_of(all["kinds"]);
    const Json rows = all.value("rows", Json());
    if (!rows.is_array() || rows.empty()) throw std::invalid_argument("budget.rows: expected rows");
    for (const Json& row : rows) {
      budget.limits.push_back(limit_of(row, fmt::format("rows[{}]", budget.limits.size())));
    }
    return budget;
  } catch (const Json::parse_error& e) {
    throw read::BadInput(file, e.byte,
                         "expected a budget as tprof budget --write makes it: no JSON");
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
  const std::string text = all.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (std::fclose(out) != 0 || !written) throw read::not_written(file, errno);
}

}  // namespace tprof::budget
