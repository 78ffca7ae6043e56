#include "steps/step_lines.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "read/error.h"
#include "read/json.h"

namespace tprof::steps {
namespace {

using read::Malformed;

constexpr std::int64_t kMaxNumber = INT64_MAX;

std::int64_t time_ns(const read::object& o, std::string_view key) {
  constexpr double kLatestMicros = 4e15;
  double micros = 0;
  const auto e = read::find(o, key);
  if (!e || e->get(micros) != simdjson::SUCCESS || !(std::abs(micros) < kLatestMicros)) {
    throw Malformed("expected a time in \"" + std::string(key) + "\"");
  }
  return std::llround(micros * 1000);
}

read::Row row(const read::object& o) {
  const std::string bucket = read::text(o, "bucket");
  const auto* known = std::ranges::find(kBuckets, bucket, &BucketInfo::name);
  if (known == std::end(kBuckets)) throw Malformed("unknown bucket '" + bucket + "'");
  const std::uint64_t calls = read::count(o, "calls");
  return {{.bucket = static_cast<Bucket>(known - kBuckets),
           .name = read::text(o, "name"),
           .dtype = read::text(o, "dtype"),
           .comm = read::optional_integer(o, "comm"),
           .device = read::optional_integer(o, "device"),
           .host_memory = read::host_memory(o),
           .bytes_class = read::integer_in(o, "bytes_class", -1, 63)},
          {.calls = calls,
           .count = read::count(o, "count"),
           .elements = read::count(o, "elements"),
           .bytes = read::count(o, "bytes"),
           .host_ns = read::count(o, "host_ns")}};
}

}  // namespace

StepLine parse_step_line(std::string_view line) {
  simdjson::dom::parser parser;
  read::object top;
  if (parser.parse(line.data(), line.size()).get(top) != simdjson::SUCCESS) {
    throw Malformed("expected one JSON object on this line");
  }
  const read::object args = read::object_of(top, "args");
  StepLine step;
  step.step = read::integer_in(args, "step", 0, kMaxNumber);
  step.from_ns = time_ns(args, "ts");
  step.to_ns = step.from_ns + time_ns(args, "dur");
  step.launches = read::find(args, "launches") ? read::count(args, "launches") : 0;
  step.lost = read::flag(args, "lost");
  step.found = read::find(args, "found").has_value();
  for (const read::object& o : read::objects_of(args, "rows")) step.rows.push_back(row(o));
  return step;
}

}  // namespace tprof::steps
