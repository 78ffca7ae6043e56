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
  const std::int64_t n = std::get<std::int64_t>(value);
  if (unit == Unit::number) return std::to_string(n);
  return number_text(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0)), unit);
}

Json json_of(const Value& value, Unit unit) {
  if (const auto* real = std::get_if<double>(&value)) {
    return unit == Unit::rate ? Json(*real) : Json(std::llround(*real));
  }
  if (const auto* n = std::get_if<std::int64_t>(&value)) return *n;
  if (const auto* n = std::get_if<std::uint64_t>(&value)) return *n;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* share = std::get_if<Share>(&value)) return share->part;
  if (const auto* json = std::get_if<Json>(&value)) return *json;
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
  return head.show != Show::if_any || std::ranges::any_of(sheet.rows, [&](const auto& row) {
           return says_something(row[column], head.unit);
         });
}

}  // namespace

std::string to_text(Sheet sheet, std::size_t most, const char* names) {
  std::vector<std::pair<std::string, text::Table::Align>> titles;
  std::vector<std::size_t> all;  // the columns that are shown
  for (std::size_t c = 0; c < sheet.heads.size(); ++c) {
    if (!shown(sheet, c)) continue;
    all.push_back(c);
    const bool left = sheet.heads[c].unit == Unit::text || sheet.heads[c].unit == Unit::name;
    titles.emplace_back(sheet.heads[c].name,
                        left ? text::Table::Align::left : text::Table::Align::right);
  }
  text::Table table(titles);
  std::vector<std::string> above;
  for (std::size_t i = 0; i < std::min(sheet.rows.size(), most); ++i) {
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
    table.row(std::move(cells));
  }
  std::string out = table.str();
  if (sheet.rows.size() > most) {
    out += fmt::format("  and {} more{} (all of them: --json)\n", sheet.rows.size() - most, names);
  }
  return out;
}

Json to_json(const Sheet& sheet) {
  Json all = Json::array();
  for (const std::vector<Value>& row : sheet.rows) {
    Json& j = all.emplace_back(Json::object());
    for (std::size_t c = 0; c < row.size(); ++c) {
      const Head& head = sheet.heads[c];
      j[head.name] = json_of(row[c], head.unit);
    }
  }
  return all;
}

}  // namespace tprof::report
