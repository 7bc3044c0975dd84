#include "report/leaderboard.hpp"

#include "core/error.hpp"
#include "core/resources.hpp"

namespace syslab::report {

std::string render_leaderboard(const store::Store& store, const std::vector<std::string>& experiments, Format format) {
  const auto text = find_resource("reports/tables/leaderboard.sql");
  if (!text) throw Error(ErrorKind::internal, "this binary does not carry 'reports/tables/leaderboard.sql'");
  const TableSource source = parse_table("leaderboard", std::string(*text));
  if (experiments.empty()) return write(fill(source, store), format);
  std::string written;
  for (const std::string& experiment : experiments) {
    written += (written.empty() ? "" : "\n") + write(fill(source, store, experiment), format);
  }
  return written;
}

}  // namespace syslab::report
