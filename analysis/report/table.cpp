#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tprof::report {
namespace {

std::string number_text(std::uint64_t n, Unit unit) {
  if (n == 0 &&
      (unit == Unit::count_not_0 || unit == Unit::bytes_not_0 || unit == Unit::ns_not_0)) {
    return "-";
  }
  switch (unit) {
    case Unit::count:
    case Unit::count_not_0:
      return text::thousands(n);
    case Unit::bytes:
    case Unit::bytes_not_0:
      return text::bytes(n);
    case Unit::ns:
    case Unit::ns_not_0:
      return text::duration(n);
    default:
      return std::to_string(n);
  }
}

struct CellText {
  Unit unit;

  std::string operator()(Unknown) const { return unit == Unit::name ? "" : "-"; }
  std::string operator()(const std::string& text) const { return text::printable(text); }
  std::string operator()(const Part& part) const {
    if (part.of_ns == 0) return "-";
    return fmt::format("{} ({})", text::duration(part.ns), ratio(part.ns, part.of_ns));
  }
  std::string operator()(double n) const {
    if (unit == Unit::rate) return fmt::format("{:.2f}", n);
    if (unit == Unit::share) return fmt::format("{:.1f}%", 100 * n);
    return text::duration(static_cast<std::uint64_t>(n));
  }
  std::string operator()(std::uint64_t n) const { return number_text(n, unit); }
  std::string operator()(std::int64_t n) const {
    if (unit == Unit::number) return std::to_string(n);
    if (unit == Unit::size_class) return check::size_class(n);
    if (unit == Unit::utc) return check::utc(n);
    return number_text(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0)), unit);
  }
  std::string operator()(const read::Process* p) const {
    return p->header.rank ? std::to_string(*p->header.rank) : check::name_of(*p);
  }
  std::string operator()(const std::vector<std::int64_t>& all) const {
    return all.empty() ? "-" : text::ranges(all);
  }
  std::string operator()(const Json& json) const { return json.dump(); }
};

struct CellJson {
  Unit unit;

  Json operator()(Unknown) const { return nullptr; }
  Json operator()(const std::string& text) const {
    return unit == Unit::name && text.empty() ? Json() : Json(text);
  }
  Json operator()(const Part& part) const { return part.ns; }
  Json operator()(double n) const {
    return unit == Unit::rate || unit == Unit::share ? Json(n) : Json(std::llround(n));
  }
  Json operator()(const read::Process* p) const {
    return p->header.rank ? Json(*p->header.rank) : Json();
  }
  template <typename T>
  Json operator()(const T& plain) const {
    return plain;
  }
};

bool says_something(const Value& value, Unit unit) {
  if (unit == Unit::ns) return !std::holds_alternative<Unknown>(value.is);
  if (const auto* n = std::get_if<std::int64_t>(&value.is)) return *n != 0;
  if (const auto* n = std::get_if<std::uint64_t>(&value.is)) return *n != 0;
  if (const auto* text = std::get_if<std::string>(&value.is)) return !text->empty();
  return !std::holds_alternative<Unknown>(value.is);
}

bool shown(const Sheet& sheet, std::size_t column) {
  const Head& head = sheet.heads[column];
  const bool may_go = head.show == Show::if_any || head.show == Show::if_room;
  return !may_go || std::ranges::any_of(sheet.rows, [&](const auto& row) {
    return says_something(row[column], head.unit);
  });
}

std::string lines_of(const Notes& notes) {
  std::string out;
  for (const std::string& note : notes) out += note.empty() ? "\n" : "  " + note + "\n";
  return out;
}

}  // namespace

std::string ratio(std::uint64_t part, std::uint64_t all) {
  const double share = static_cast<double>(part) / static_cast<double>(all);
  return all == 0 ? "-" : fmt::format("{:.1f}%", 100 * share);
}

std::string cut(const std::string& text, std::size_t most) {
  const std::string shown = text::printable(text);
  return shown.size() <= most ? shown : shown.substr(0, text::fitting(shown, most)) + "...";
}

std::string to_text(Sheet sheet, const Room& room) {
  using enum text::Table::Align;
  std::vector<std::pair<std::string, text::Table::Align>> titles;
  std::vector<std::size_t> all;     // shown columns
  std::vector<std::size_t> may_go;  // the last one goes first
  for (std::size_t c = 0; c < sheet.heads.size(); ++c) {
    if (!shown(sheet, c)) continue;
    const Head& head = sheet.heads[c];
    if (head.show == Show::if_room) may_go.push_back(all.size());
    if (head.show == Show::last_to_go) may_go.insert(may_go.begin(), all.size());
    all.push_back(c);
    const bool text = head.unit == Unit::text || head.unit == Unit::name;
    titles.emplace_back(head.title, text || head.unit == Unit::size_class ? left : right);
  }
  text::Table table(titles);
  std::vector<std::string> above;
  for (std::size_t i = 0; i < std::min(sheet.rows.size(), room.rows); ++i) {
    const std::vector<Value> row = std::move(sheet.rows[i]);
    std::vector<std::string> cells;
    std::vector<std::string> labels;
    for (const std::size_t c : all) {
      cells.push_back(std::visit(CellText{sheet.heads[c].unit}, row[c].is));
      if (sheet.heads[c].show == Show::label) labels.push_back(cells.back());
    }
    for (std::size_t k = 0; k < all.size() && labels == above; ++k) {
      if (sheet.heads[all[k]].show == Show::label) cells[k].clear();
    }
    above = std::move(labels);
    table.row(std::move(cells));
  }
  std::string out = table.str(room.width, may_go, room.breaks);
  if (sheet.rows.size() > room.rows) {
    out += fmt::format("  and {} more{} (all of them: {})\n", sheet.rows.size() - room.rows,
                       room.names, room.all_with);
  }
  std::string left_out;
  const std::vector<std::size_t> fit = table.shown(room.width, std::move(may_go));
  for (std::size_t i = 0; i < titles.size(); ++i) {
    if (std::ranges::find(fit, i) != fit.end()) continue;
    left_out += left_out.empty() ? "" : ", ";
    // A title that several columns have says more about the column before it.
    const std::string& title = titles[i].first;
    const bool alone = std::ranges::count(titles, title, [](auto& t) { return t.first; }) == 1;
    if (i != 0 && !alone) left_out += titles[i - 1].first + " ";
    left_out += title;
  }
  if (room.tells_columns && !left_out.empty()) {
    out += fmt::format("  no room for {}: use a wider terminal, or a larger COLUMNS in a pipe\n",
                       left_out);
  }
  return out;
}

Json heads_json(const Sheet& sheet) {
  constexpr const char* kUnits[] = {"text",  "text",  "text",       "number", "count",
                                    "count", "bytes", "bytes",      "ns",     "ns",
                                    "rate",  "share", "size_class", "utc",    "exposed"};
  Json all = Json::array();
  for (const Head& head : sheet.heads) {
    if (head.title == nullptr || head.key == nullptr) continue;
    all.push_back({head.title, head.key, kUnits[static_cast<int>(head.unit)]});
  }
  return all;
}

Json to_json(Sheet sheet, Shape shape) {
  Json all = shape == Shape::rows ? Json::array() : shape == Shape::row ? Json() : Json::object();
  if (shape == Shape::columns) {
    for (const Head& head : sheet.heads) all[head.key] = Json::array();
  }
  for (std::vector<Value>& values : sheet.rows) {
    const std::vector<Value> row = std::move(values);
    Json object = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      const Head& head = sheet.heads[c];
      Json& to = shape == Shape::columns ? all[head.key].emplace_back() : object[head.key];
      to = std::visit(CellJson{head.unit}, row[c].is);
    }
    if (shape == Shape::rows) all.push_back(std::move(object));
    if (shape == Shape::row) all = std::move(object);
    if (shape != Shape::members) continue;
    const std::string name = object.begin()->get<std::string>();
    object.erase(object.begin());
    all[name] = std::move(object);
  }
  return all;
}

void append(Notes& to, const Notes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Notes notes_if(std::initializer_list<std::pair<bool, std::string>> all) {
  Notes out;
  for (const auto& [told, note] : all) {
    if (told) out.push_back(note);
  }
  return out;
}

std::string to_text(Section s) {
  std::string out = s.title.empty() ? "" : "\n" + s.title + "\n";
  out += lines_of(s.lead);
  if (!s.table.heads.empty()) out += to_text(std::move(s.table), s.room);
  return out + lines_of(s.notes);
}

void put(Json& to, const char* key, Section s) {
  if (!s.at) return;
  const Json::json_pointer at("/" + std::string(key) + *s.at);
  if (!s.facts.is_null()) to[at.parent_pointer()].update(s.facts);
  to[at] = to_json(std::move(s.table), s.shape);
}

}  // namespace tprof::report
