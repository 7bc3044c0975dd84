#include "report/leaderboard.hpp"

#include "core/error.hpp"
#include "core/resources.hpp"
#include "report/document.hpp"

namespace syslab::report {

std::string render_leaderboard(const store::Store& store, const std::vector<std::string>& experiments, Format format) {
  const auto text = find_resource("reports/tables/leaderboard.sql");
  if (!text) throw Error(ErrorKind::internal, "this binary does not carry 'reports/tables/leaderboard.sql'");
  const TableSource source = parse_table("leaderboard", std::string(*text));
  Document document{source.title, {}};
  std::string written;
  for (const std::string& experiment : experiments.empty() ? std::vector<std::string>{""} : experiments) {
    document.blocks.emplace_back(fill(source, store, experiment));
    written += (written.empty() ? "" : "\n") + write(std::get<Table>(document.blocks.back()), format);
  }
  if (format == Format::html) return write_html(document);
  return format == Format::latex ? write_tex(document) : written;
}

}  // namespace syslab::report
