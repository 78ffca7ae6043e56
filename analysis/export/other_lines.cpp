#include "export/other_lines.h"

#include "export/digits.h"
#include "export/json_text.h"

namespace tprof::trace_export {

namespace {
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
}

std::int64_t OtherLines::lane(std::string_view process, std::string_view thread) {
  const std::int64_t next = first_lane_of(number_) + static_cast<std::int64_t>(lanes_.size());
  return lanes_.try_emplace({std::string(process), std::string(thread)}, next).first->second;
}

std::int64_t OtherLines::named_lane(const std::string& title) {
  const std::size_t before = lanes_.size();
  const std::int64_t at = lane("", title);
  if (lanes_.size() == before) return at;
  begin("", "\"M\"", at);
  field("name", "\"thread_name\"");
  field("args", "{\"name\":" + json_text(title) + '}');
  end();
  return at;
}

void OtherLines::begin(std::string_view category, std::string_view phase, std::int64_t lane) {
  out_ += ",\n{\"cat\":\"OTHER,";
  out_ += category;
  out_ += '"';
  field("ph", phase);
  field("pid", std::to_string(to_.pid));
  field("tid", std::to_string(lane));
}

void OtherLines::field(std::string_view key, std::string_view value) {
  out_ += ",\"";
  out_ += key;
  out_ += "\":";
  out_ += value;
}

void OtherLines::at(std::int64_t realtime_ns) {
  field("ts", "");
  append_micros(out_, to_.moved(realtime_ns));
}

void OtherLines::duration(std::int64_t ns) {
  field("dur", "");
  append_micros(out_, ns);
}

void OtherLines::id(std::string_view unquoted) {
  field("id", "\"other-");
  out_ += std::to_string(number_);
  out_ += '-';
  out_ += unquoted;
  out_ += '"';
}

void OtherLines::end() {
  out_ += '}';
  if (out_.size() >= kPieceBytes) full_(out_);
}

}  // namespace tprof::trace_export
