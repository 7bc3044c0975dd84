#include "cli/bisect_memory.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "core/text/json_text.hpp"
#include "store/cells.hpp"

namespace syslab::cli {

std::optional<Change> remembered(const store::Store& store, const plan::ComparisonPlan& plan, const std::string& label,
                                 const std::string& machine, std::optional<double> asked_delta) {
  const plan::ComparisonPoint& point = plan.points[0];
  const store::ResultSet found = store.query(
      "SELECT k.launch, k.log_ratio, c.value_a,"
      " (SELECT avg(l.value) FROM json_each(c.facts, '$.launch_seconds') l),"
      " c.facts ->> '$.crowd.load', c.facts ->> '$.crowd.processors'"
      " FROM comparison_block k JOIN comparison c ON c.id = k.comparison_id WHERE c.id = (SELECT max(comparison_id) "
      "FROM v_comparison"
      " WHERE measured_here AND verb = 'bisect' AND label = ?1 AND label_a = ?2 AND label_b = ?3 AND experiment = ?4 "
      "AND params = ?5"
      " AND comparability_key = ?6 AND facts ->> '$.stop' = 'launches') ORDER BY 1, k.block",
      {store::text_cell(label), store::text_cell(plan.sides.a.label()), store::text_cell(plan.sides.b.label()),
       store::text_cell(point.a.experiment->id), store::text_cell(json_text(point.shared.to_json())),
       store::text_cell(machine)});
  std::vector<stats::PairedBlock> blocks;
  for (const auto& row : found.rows) blocks.push_back({static_cast<int>(row[0].integer), row[1].real});
  if (blocks.empty() || found.rows[0][2].type != store::Cell::Type::real) return std::nullopt;
  Change change = change_of(blocks, found.rows[0][2].real, asked_delta);
  change.remembered = true;
  if (found.rows[0][3].type == store::Cell::Type::real) change.launch_seconds = found.rows[0][3].real;
  if (found.rows[0][4].type == store::Cell::Type::real && found.rows[0][5].type == store::Cell::Type::integer) {
    change.crowd = Crowd{found.rows[0][4].real, static_cast<int>(found.rows[0][5].integer)};
  }
  return change;
}

}  // namespace syslab::cli
