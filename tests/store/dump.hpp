// All that a store holds, as text that does not depend on local ids or on the order of rows: for comparing stores.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/store/fixture.hpp"

namespace syslab::store::test {

// What each local id is replaced by: an expression that names the same row in every file.
inline const std::map<std::string, std::string>& names_of_ids() {
  static const std::map<std::string, std::string> names{
      {"environment_id", "(SELECT uid FROM environment WHERE id = t.environment_id)"},
      {"build_id", "(SELECT uid FROM build WHERE id = t.build_id)"},
      {"implementation_id", "(SELECT uid FROM implementation WHERE id = t.implementation_id)"},
      {"case_id", "(SELECT uid FROM case_def WHERE id = t.case_id)"},
      {"run_id", "(SELECT uid FROM run WHERE id = t.run_id)"},
      {"attempt_id", "(SELECT uid FROM attempt WHERE id = t.attempt_id)"},
      {"submission_id", "(SELECT uid FROM submission WHERE id = t.submission_id)"},
      {"comparison_id", "(SELECT uid FROM comparison WHERE id = t.comparison_id)"},
      {"series_id",
       "(SELECT a.uid || '/' || s.name || '/' || s.unit FROM series s JOIN attempt a ON a.id = s.attempt_id "
       "WHERE s.id = t.series_id)"},
  };
  return names;
}

inline std::vector<std::string> column(const Store& store, const std::string& sql) {
  std::vector<std::string> values;
  for (const auto& row : store.query(sql).rows) values.push_back(row[0].text);
  return values;
}

// All but what a file knows of itself, which is not merged.
inline std::vector<std::string> data_tables(const Store& store) {
  return column(store,
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
                "AND name NOT IN ('schema_migration', 'arrival', 'run_claim') ORDER BY name");
}

inline std::string dump_table(const Store& store, const std::string& table) {
  std::string expressions;
  for (const std::string& name : column(store, "SELECT name FROM pragma_table_info('" + table + "')")) {
    if (name == "id") continue;
    const auto found = names_of_ids().find(name);
    expressions += (expressions.empty() ? "quote(" : " || '|' || quote(") +
                   (found != names_of_ids().end() ? found->second : "t." + name) + ")";
  }
  std::string dump;
  for (const std::string& row :
       column(store, "SELECT " + expressions + " AS line FROM " + table + " t ORDER BY line")) {
    dump += table + ": " + row + "\n";
  }
  return dump;
}

inline std::string dump(const Store& store) {
  std::string all;
  for (const std::string& table : data_tables(store)) all += dump_table(store, table);
  return all;
}

}  // namespace syslab::store::test
