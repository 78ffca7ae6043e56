// Edits one line on its way into a merged trace. If the line is JSON, so is the result, and nothing
// but pid and times may differ.
#include <nlohmann/json.hpp>

#include "export/line_writer.h"
#include "read/json.h"
#include "support/fuzz.h"

namespace {

using Json = nlohmann::ordered_json;

void without_what_moves(Json& line) {
  for (const char* key : {"pid", "ts"}) line.erase(key);
  if (!line.contains("args") || !line["args"].is_object()) return;
  for (const char* key : {"ts", "clock", "base_time_ns"}) line["args"].erase(key);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tprof;
  std::string text(fuzz::text_of(data, size));
  if (text.find('\n') != std::string::npos) return 0;
  text.reserve(size + simdjson::SIMDJSON_PADDING);
  const trace_export::Placement to{7, 1'500'000'123, 1'763'683'200'000'000'000};
  trace_export::LineWriter writer;
  trace_export::Pen pen;
  try {
    writer.write(text, {.to = to}, pen);
  } catch (const read::Malformed&) {
    return 0;
  }
  if (pen.size() == 0) return 0;
  const std::string out(pen.text().substr(2));  // behind the break before it
  Json before = Json::parse(text, nullptr, false);
  if (before.is_discarded()) return 0;
  Json after = Json::parse(out, nullptr, false);
  fuzz::promise(!after.is_discarded(), "an edited line is JSON", out);
  fuzz::promise(after.at("pid") == to.pid, "the pid is the new one", out);
  without_what_moves(before);
  without_what_moves(after);
  fuzz::promise(before == after, "nothing but pid and times changes", out);
  return 0;
}
