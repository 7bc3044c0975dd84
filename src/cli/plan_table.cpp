#include "cli/plan_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/text/text.hpp"
#include "report/table.hpp"

namespace syslab::cli {
namespace {

using Cases = std::vector<const plan::PlannedCase*>;

constexpr const char* kRanks = "ranks";

std::string value_of(const plan::PlannedCase& planned, const std::string& axis) {
  if (axis == kRanks) return std::to_string(planned.world_size);
  return planned.params.has(axis) ? to_string(planned.params.at(axis)) : "-";
}

// In the experiment's order, ranks last.
std::vector<std::string> axes_of(const Cases& cases) {
  std::vector<std::string> names;
  for (const Axis& axis : cases.front()->experiment->axes) {
    const bool set =
        std::ranges::any_of(cases, [&](const plan::PlannedCase* one) { return one->params.has(axis.name); });
    if (set) names.push_back(axis.name);
  }
  if (std::ranges::any_of(cases, [](const plan::PlannedCase* one) { return one->world_size > 1; })) {
    names.emplace_back(kRanks);
  }
  return names;
}

std::string outlook_of(const plan::PlannedCase& planned) {
  if (planned.skip_reason) return (planned.unsupported ? "unsupported: " : "skipped: ") + *planned.skip_reason;
  if (!planned.predicted_oom.empty()) return "out of memory: " + planned.predicted_oom;
  if (planned.predicted_from.empty()) return "-";
  return fmt::format("about {}, {}", format_duration(planned.predicted_time), planned.predicted_from);
}

std::string table_of(const Console& console, const Cases& cases) {
  std::string title = console.styled(cases.front()->experiment->id, Style::bold);
  std::vector<report::Column> header{{"case", "1", "number", "right"}, {"implementation", "1", "text", "left"}};
  std::vector<std::string> varied;
  for (const std::string& axis : axes_of(cases)) {
    std::set<std::string> values;
    for (const plan::PlannedCase* one : cases) values.insert(value_of(*one, axis));
    if (values.size() == 1) {
      title += fmt::format(" {}={}", axis, *values.begin());
    } else {
      varied.push_back(axis);
      header.push_back({axis, "1", "text", "right"});
    }
  }
  header.push_back({"memory", "1", "text", "right"});
  header.push_back({"time", "1", "text", "left"});
  std::vector<std::vector<std::string>> rows;
  for (const plan::PlannedCase* one : cases) {
    std::vector<std::string> row{std::to_string(one->index + 1), one->implementation};
    for (const std::string& axis : varied) row.push_back(value_of(*one, axis));
    const bool known = one->predicted_bytes > 0;
    row.push_back(known ? format_bytes(static_cast<std::uint64_t>(one->predicted_bytes)) : "-");
    row.push_back(outlook_of(*one));
    rows.push_back(std::move(row));
  }
  return title + "\n" + report::write_aligned(header, rows) + "\n";
}

}  // namespace

std::string plan_tables(const Console& console, const plan::Plan& plan) {
  std::string text;
  for (auto begin = plan.cases.begin(); begin != plan.cases.end();) {
    const auto end = std::find_if(begin, plan.cases.end(),
                                  [&](const plan::PlannedCase& one) { return one.experiment != begin->experiment; });
    Cases cases;
    for (auto one = begin; one != end; ++one) cases.push_back(&*one);
    text += table_of(console, cases);
    begin = end;
  }
  return text;
}

}  // namespace syslab::cli
