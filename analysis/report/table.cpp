#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "text/text.h"

namespace tprof::report {
namespace {

std::string number_text(double n, Unit unit) {
  if (unit == Unit::rate) return fmt::format("{:.2f}", n);
  return text::duration(static_cast<std::uint64_t>(n));
}

std::string number_text(std::uint64_t n, Unit unit) {
  switch (unit) {
    case Unit::count_not_0:
    case Unit::bytes_not_0:
    case Unit::ns_not_0:
      if (n == 0) return "-";
      break;
    default:
      break;
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

std::string text_of(const Value& value, Unit unit) {
  if (std::holds_alternative<Unknown>(value)) return unit == Unit::name ? "" : "-";
  if (const auto* text = std::get_if<std::string>(&value)) return text::printable(*text);
  if (const auto* share = std::get_if<Share>(&value)) {
    if (share->whole <= 0) return "-";
    const double part = static_cast<double>(share->part) / static_cast<double>(share->whole);
    return fmt::format("{:.1f}%", 100 * part);
  }
  if (const auto* real = std::get_if<double>(&value)) return number_text(*real, unit);
  if (const auto* n = std::get_if<std::uint64_t>(&value)) return number_text(*n, unit);
  if (const auto* own = std::get_if<Measure>(&value)) return number_text(own->n, own->unit);
  const std::int64_t n = std::get<std::int64_t>(value);
  if (unit == Unit::number) return std::to_string(n);
  return number_text(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0)), unit);
}

Json json_of(Value&& value, Unit unit) {
  if (const auto* real = std::get_if<double>(&value)) {
    return unit == Unit::rate ? Json(*real) : Json(std::llround(*real));
  }
  if (const auto* n = std::get_if<std::int64_t>(&value)) return *n;
  if (const auto* n = std::get_if<std::uint64_t>(&value)) return *n;
  if (auto* text = std::get_if<std::string>(&value)) return std::move(*text);
  if (const auto* share = std::get_if<Share>(&value)) return share->part;
  if (const auto* own = std::get_if<Measure>(&value)) return own->n;
  if (auto* json = std::get_if<Json>(&value)) return std::move(*json);
  return nullptr;
}

bool says_something(const Value& value, Unit unit) {
  if (unit == Unit::ns) return !std::holds_alternative<Unknown>(value);
  if (const auto* n = std::get_if<std::int64_t>(&value)) return *n != 0;
  if (const auto* n = std::get_if<std::uint64_t>(&value)) return *n != 0;
  if (const auto* text = std::get_if<std::string>(&value)) return !text->empty();
  return !std::holds_alternative<Unknown>(value);
}

bool shown(const Sheet& sheet, std::size_t column) {
  const Head& head = sheet.heads[column];
  const bool may_go = head.show == Show::if_any || head.show == Show::if_room;
  return head.show != Show::stand_in &&
         (!may_go || std::ranges::any_of(sheet.rows, [&](const auto& row) {
           return says_something(row[column], head.unit);
         }));
}

// A column that may stand in for the one at `place` of those that are shown.
struct StandIn {
  std::size_t column = 0;
  std::size_t place = 0;
  std::vector<std::string> cells{};
};

}  // namespace

std::string to_text(Sheet sheet, const Room& room, const std::vector<Legend>& legend) {
  std::vector<std::pair<std::string, text::Table::Align>> titles;
  std::vector<std::size_t> all;     // the columns that are shown
  std::vector<std::size_t> may_go;  // the last of them first
  std::optional<StandIn> stand_in;
  for (std::size_t c = 0; c < sheet.heads.size(); ++c) {
    if (sheet.heads[c].show == Show::stand_in) stand_in = {.column = c, .place = all.size()};
    if (!shown(sheet, c)) continue;
    if (sheet.heads[c].show == Show::if_room) may_go.push_back(all.size());
    if (sheet.heads[c].show == Show::last_to_go) may_go.insert(may_go.begin(), all.size());
    all.push_back(c);
    const bool left = sheet.heads[c].unit == Unit::text || sheet.heads[c].unit == Unit::name;
    titles.emplace_back(sheet.heads[c].name,
                        left ? text::Table::Align::left : text::Table::Align::right);
  }
  text::Table table(titles);
  std::vector<std::string> above;
  for (std::size_t i = 0; i < std::min(sheet.rows.size(), room.rows); ++i) {
    const std::vector<Value> row = std::move(sheet.rows[i]);
    std::vector<std::string> cells;
    std::vector<std::string> labels;
    for (const std::size_t c : all) {
      cells.push_back(text_of(row[c], sheet.heads[c].unit));
      if (sheet.heads[c].show == Show::label) labels.push_back(cells.back());
    }
    if (!labels.empty() && labels == above) {
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (sheet.heads[all[k]].show == Show::label) cells[k].clear();
      }
    }
    above = std::move(labels);
    if (stand_in) stand_in->cells.push_back(text_of(row[stand_in->column], Unit::text));
    table.row(std::move(cells));
  }
  std::vector<std::size_t> shown_ones = table.shown(room.width, may_go);
  if (stand_in && std::ranges::find(shown_ones, stand_in->place - 1) == shown_ones.end()) {
    table.replace(stand_in->place, std::move(stand_in->cells));
    shown_ones = table.shown(room.width, may_go);
  }
  std::string out = table.str(room.width, std::move(may_go), room.breaks);
  if (sheet.rows.size() > room.rows) {
    out += fmt::format("  and {} more{} (all of them: {})\n", sheet.rows.size() - room.rows,
                       room.names, room.all_with);
  }
  const auto is_shown = [&](std::string_view name) {
    return std::ranges::any_of(shown_ones, [&](std::size_t i) { return titles[i].first == name; });
  };
  std::string left_out;
  for (const auto& [name, align] : titles) {
    if (!is_shown(name)) left_out += (left_out.empty() ? "" : ", ") + name;
  }
  if (room.tells_columns && !left_out.empty()) {
    out += fmt::format("  no room for {}: shown on a wider terminal, in a file or in a pipe\n",
                       left_out);
  }
  std::string meaning;
  for (const Legend& l : legend) {
    if (l.column == nullptr || is_shown(l.column))
      (meaning += meaning.empty() ? "" : " ") += l.text;
  }
  return meaning.empty() ? out : out + "  " + meaning + "\n";
}

Json to_json(Sheet sheet, Shape shape) {
  Json all = shape == Shape::rows ? Json::array() : shape == Shape::row ? Json() : Json::object();
  if (shape == Shape::columns) {
    for (const Head& head : sheet.heads) all[head.name] = Json::array();
  }
  for (std::vector<Value>& values : sheet.rows) {
    std::vector<Value> row = std::move(values);
    std::size_t c = 0;
    const auto object = [&] {
      Json j = Json::object();
      for (; c < row.size(); ++c) {
        j[sheet.heads[c].name] = json_of(std::move(row[c]), sheet.heads[c].unit);
      }
      return j;
    };
    switch (shape) {
      case Shape::rows:
        all.push_back(object());
        break;
      case Shape::members: {
        const std::string name = std::get<std::string>(row[c++]);
        all[name] = object();
        break;
      }
      case Shape::columns:
        for (; c < row.size(); ++c) {
          all[sheet.heads[c].name].push_back(json_of(std::move(row[c]), sheet.heads[c].unit));
        }
        break;
      case Shape::row:
        all = object();
        break;
    }
  }
  return all;
}

}  // namespace tprof::report
