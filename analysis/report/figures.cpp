#include "report/figures.h"

#include <utility>

namespace tprof::report {

using read::Amounts;

Figures call_figures(Show elements) {
  return {{"calls", "calls", Unit::count, &Amounts::calls},
          {nullptr, "count", Unit::count, &Amounts::count},
          {"elements", "elements", Unit::count, &Amounts::elements, elements},
          {"bytes", "bytes", Unit::bytes, &Amounts::bytes}};
}

Figures time_figures(bool timed) {
  const auto known = [](std::uint64_t Amounts::*n, std::uint64_t Amounts::*ns) {
    return [=](const Amounts& a) { return a.*n == 0 ? Value() : Value(a.*ns); };
  };
  return {
      {"host time", "host_ns", Unit::ns_not_0, &Amounts::host_ns,
       timed ? Show::if_room : Show::always},
      {"device time", "device_ns", Unit::ns, known(&Amounts::device_timed, &Amounts::device_ns)},
      {nullptr, "device_timed", Unit::count, &Amounts::device_timed},
      {nullptr, "exposure_known", Unit::count, &Amounts::exposure_known},
      {nullptr, "exposure_known_ns", Unit::ns,
       known(&Amounts::exposure_known, &Amounts::exposure_known_ns)},
      {"exposed", "exposed_ns", Unit::exposed,
       [](const Amounts& a) {
         const Part part = {a.exposed_ns, exposure_tells(a) ? a.exposure_known_ns : 0};
         return a.exposure_known == 0 ? Value() : Value(part);
       },
       Show::if_any}};
}

Figure mean_host(Show show) {
  return {"mean host", nullptr, Unit::ns,
          [](const Amounts& a) {
            const std::uint64_t made = a.calls - a.replayed;
            return made == 0 ? Value() : Value(a.host_ns / made);
          },
          show};
}

Figures people_only(Figures figures) {
  for (Figure& f : figures) f.key = nullptr;
  return figures;
}

bool exposure_tells(const Amounts& a) {
  return a.exposure_known != 0 && 2 * a.exposure_known >= a.device_timed;
}

std::vector<Column<BucketRow>> bucket_columns(const char* title, const char* key,
                                              std::optional<Column<BucketRow>> by) {
  std::vector<Column<BucketRow>> all = {{title, key, Unit::text, &BucketRow::label, Show::label}};
  if (by) all.push_back(*by);
  all.push_back({"bucket", "bucket", Unit::text, &BucketRow::bucket});
  append(all, call_figures());
  return all;
}

Json figures(const Amounts& a) {
  static const Figures kColumns = [] {
    Figures all = call_figures();
    for (Figure& f : time_figures(true)) all.push_back(std::move(f));
    return all;
  }();
  return row_json(kColumns, a);
}

}  // namespace tprof::report
