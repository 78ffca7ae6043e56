#include "report/figures.h"

#include <array>

namespace tprof::report {
namespace {

struct Figures {
  read::Amounts amounts;
};

const std::vector<Column<Figures>>& columns_of_figures(bool exposure) {
  static const auto kColumns = [] {
    std::array<std::vector<Column<Figures>>, 2> all;
    for (std::vector<Column<Figures>>& columns : all) {
      columns = call_columns<Figures>();
      append(columns, time_columns<Figures>());
    }
    append(all[1], exposure_columns<Figures>());
    return all;
  }();
  return kColumns[exposure ? 1 : 0];
}

}  // namespace

Json figures(const read::Amounts& a) {
  return row_json(columns_of_figures(true), Figures{a});
}

Json call_figures(const read::Amounts& a) {
  return row_json(columns_of_figures(false), Figures{a});
}

}  // namespace tprof::report
