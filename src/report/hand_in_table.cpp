#include "report/hand_in_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>

#include "core/contains.hpp"
#include "report/byte_unit.hpp"
#include "report/cells.hpp"

namespace syslab::report {
namespace {

constexpr std::size_t kRows = 12;

void shorten_names(Table& table) {
  for (auto& row : table.result.rows) {
    for (store::Cell& cell : row) {
      if (cell.type == store::Cell::Type::text) cell.text = short_name(std::move(cell.text));
    }
  }
}

// One GPU's rows, of several that which the words speak of, else that which has most results: numbers of two cannot be
// held beside one another, and where a GPU answers, a CPU's rows show nothing more.
void keep_gpu(const std::vector<std::string>& gpus, const std::string& spoken_of, Table& table) {
  const auto column = find_column(table.result, "device");
  if (!column) return;
  std::vector<int> rows_of(gpus.size()), results(gpus.size());
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    const auto found = std::ranges::find(gpus, plain(table.result.rows[row][*column]));
    if (found == gpus.end()) continue;
    const auto gpu = static_cast<std::size_t>(found - gpus.begin());
    ++rows_of[gpu];
    if (status_of(table, row).value_or(Status::ok) == Status::ok) ++results[gpu];
  }
  std::optional<std::size_t> kept;
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    if (rows_of[gpu] > 0 && (!kept || results[gpu] > results[*kept])) kept = gpu;
    if (results[gpu] > 0 && gpus[gpu] == spoken_of) {
      kept = gpu;
      break;
    }
  }
  if (!kept) return;
  // In a table over models one that this GPU has not is shown as another has it, which the row then says.
  const auto model = find_column(table.result, "model");
  std::set<std::string> models;
  for (const auto& row : table.result.rows) {
    if (model && plain(row[*column]) == gpus[*kept]) models.insert(plain(row[*model]));
  }
  const auto is_of_another = [&](const auto& row) {
    const std::string device = plain(row[*column]);
    if (device == gpus[*kept]) return false;
    return models.size() < 2 || models.contains(plain(row[*model])) || std::ranges::find(gpus, device) == gpus.end();
  };
  std::erase_if(table.result.rows, is_of_another);
}

// How far a number can be trusted is the appendix's to show, and what only completes an account.
bool is_for_the_appendix(const Column& column) {
  static const std::set<std::string> kNames{
      "worst_error", "bound",   "scratch",  "n",    "checked_percent", "noise", "communicating", "overlapped",
      "padding",     "formula", "gathered", "bits", "last_change",     "least", "most",          "others",
      "of",          "tokens"};
  return kNames.contains(column.name);
}

// What would say nothing there: of no row is there a value, or all went well.
bool says_nothing(const Table& table, const Column& column) {
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    const store::Cell& cell = cell_of(table.result, row, column.name);
    if (column.name == "status" ? status_of(table, row) != Status::ok : cell.type != store::Cell::Type::null)
      return false;
  }
  return true;
}

// A row that ran out of memory says so in its first number: the reasons stand once, beneath, and take no column.
std::vector<std::string> told_of_memory(Table& made) {
  std::vector<std::string> reasons;
  for (std::size_t row = 0; row < made.result.rows.size(); ++row) {
    const std::optional<Status> status = status_of(made, row);
    if (status != Status::ok && status != Status::oom) return {};
    const std::string reason = plain(cell_of(made.result, row, "message"));
    if (status == Status::oom && !reason.empty() && !contains(reasons, reason)) reasons.push_back(reason);
  }
  if (reasons.empty()) return {};
  std::erase_if(made.source.columns, [](const Column& column) { return column.name == "status"; });
  const auto message = find_column(made.result, "message");
  for (auto& row : made.result.rows) row[*message].type = store::Cell::Type::null;
  return {fmt::format("OOM, out of memory: {}.", fmt::join(reasons, "; "))};
}

// Columns of bytes in the unit that fits the smallest of them; to the byte they stand in the appendix.
void fit_bytes(Table& table) {
  for (Column& column : table.source.columns) {
    const auto at = find_column(table.result, column.name);
    if (column.unit != "B" || !at) continue;
    double least = 0;
    for (auto& row : table.result.rows) {
      store::Cell& cell = row[*at];
      if (cell.type == store::Cell::Type::integer) cell.real = static_cast<double>(cell.integer);
      if (cell.type == store::Cell::Type::null) cell.real = 0;
      if (cell.real > 0 && (least == 0 || cell.real < least)) least = cell.real;
    }
    const std::string unit(fitting_unit(least, "GiB"));
    if (least == 0 || unit == "B") continue;
    for (auto& row : table.result.rows) {
      store::Cell& cell = row[*at];
      if (cell.type == store::Cell::Type::integer) cell.type = store::Cell::Type::real;
      cell.real /= *bytes_in(unit);
    }
    column.unit = unit;
    column.format = ".4g";
  }
}

// What explains a column that is not shown is not said.
void drop_explanations(Table& made) {
  const auto is_shown = [&](const std::string& name) {
    return std::ranges::find(made.source.columns, name, &Column::name) != made.source.columns.end();
  };
  std::erase_if(made.source.about, [&](const Explanation& one) { return !std::ranges::all_of(one.columns, is_shown); });
}

// "syslab::framework::element_kernel<(syslab::framework::Operation)14, 4>" as "element_kernel<(Operation)14, 4>".
std::string without_namespaces(std::string name) {
  constexpr std::string_view kNowhere = "(anonymous namespace)::", kScope = "::";
  for (std::size_t at; (at = name.find(kNowhere)) != std::string::npos;) name.erase(at, kNowhere.size());
  for (std::size_t at; (at = name.find(kScope)) != std::string::npos;) {
    std::size_t from = at;
    while (from > 0 && (std::isalnum(static_cast<unsigned char>(name[from - 1])) != 0 || name[from - 1] == '_')) --from;
    name.erase(from, at + kScope.size() - from);
  }
  return name;
}

// Rows that are results. Our own reference answers nothing: where it is compared with, a column says so.
std::vector<std::size_t> good_rows(const Table& table) {
  std::vector<std::size_t> good, references;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    const Status status = status_of(table, row).value_or(Status::ok);
    if (status != Status::ok && status != Status::oom) continue;
    const bool is_reference = plain(cell_of(table.result, row, "implementation")) == "reference";
    (is_reference ? references : good).push_back(row);
  }
  return good.empty() ? references : good;
}

}  // namespace

std::string short_name(std::string name) {
  constexpr std::size_t kLongest = 36, kHead = 22, kTail = 12;
  const bool is_name = name.find("::") != std::string::npos || name.find(' ') == std::string::npos;
  const bool is_ascii = std::ranges::all_of(name, [](unsigned char c) { return c < 0x80; });
  if (name.size() <= kLongest || !is_name || !is_ascii) return name;
  name = without_namespaces(name);
  if (name.size() <= kLongest) return name;
  // Of cuBLAS' kernels the layouts and the tile tell one from another: "sm80_xmma_gemm_…_tn_n_tilesize128x64x8…".
  constexpr std::string_view kTile = "_tilesize", kLayouts = "_tn_n";
  if (const std::size_t tile = name.find(kTile); tile != std::string::npos && tile >= kLayouts.size()) {
    const std::size_t from = tile - kLayouts.size();
    return name.substr(0, name.find("gemm") == std::string::npos ? 0 : name.find("gemm") + 4) + "…" +
           name.substr(from, name.find('_', tile + 1) - from) + "…";
  }
  // "Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>": what is launched is all the same; its argument tells.
  constexpr std::string_view kProduct = "gemm_";
  if (const std::size_t product = name.find(kProduct); product != std::string::npos && name.starts_with("Kernel")) {
    const std::size_t from = name.find('<') + 1, begin = name.rfind('_', product) + 1;
    const std::string word = name.substr(from, name.find('_', from) - from);
    return word + "…" + name.substr(begin, name.find_last_of('>') - begin);
  }
  return name.substr(0, kHead) + "…" + name.substr(name.size() - kTail);
}

Table hand_in_table(const Table& whole, const std::string& appendix, const std::vector<std::string>& gpus,
                    const std::string& spoken_of) {
  Table table = whole;
  keep_gpu(gpus, spoken_of, table);
  const std::vector<std::size_t> good = good_rows(table);
  Table made = table;
  made.result.rows.clear();
  const std::size_t shown = std::min(good.size(), kRows);
  const bool by_size = table.source.columns.front().align == "right";
  for (std::size_t i = 0; i < shown; ++i) {
    // Of a table in the order of a size both ends, and what lies evenly between; else the first, which matter most.
    const std::size_t place = by_size && shown > 1 ? (i * (good.size() - 1) + (shown - 1) / 2) / (shown - 1) : i;
    made.result.rows.push_back(table.result.rows[good[place]]);
  }
  std::erase_if(made.source.columns, [&](const Column& column) {
    return is_for_the_appendix(column) || (shown > 0 && says_nothing(made, column));
  });
  // What every row says is said once, beneath them.
  static const std::set<std::string> kCircumstances{"batch", "context", "head_dim", "heads", "ranks"};
  for (Column& column : made.source.columns) {
    const bool is_condition = column.align != "right" || kCircumstances.contains(column.name);
    if (shown > 1 && is_condition && column.name != "status") column.only_if_varies = true;
  }
  for (Column& column : made.source.columns) {
    if (column.format.starts_with("ci(")) column.format = "even_" + column.format;
  }
  drop_explanations(made);
  fit_bytes(made);
  shorten_names(made);
  made.footnote.clear();
  made.source.notes = told_of_memory(made);
  if (shown < table.result.rows.size()) {
    made.source.notes.push_back(fmt::format("{} of {} rows{}.", shown, table.result.rows.size(),
                                            appendix.empty() ? "" : "; all are in the appendix"));
  }
  return made;
}

}  // namespace syslab::report
