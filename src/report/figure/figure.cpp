#include "report/figure/figure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "core/files/temporary_folder.hpp"
#include "report/cells.hpp"
#include "report/figure/data.hpp"
#include "report/figure/gnuplot.hpp"
#include "report/figure/script.hpp"
#include "report/figure/svg.hpp"
#include "report/handout_models.hpp"
#include "report/provenance.hpp"
#include "report/text.hpp"
#include "store/cells.hpp"

namespace syslab::report {
namespace {

namespace fs = std::filesystem;

std::string file_in(const TemporaryFolder& folder, std::size_t number, const char* kind) {
  return fmt::format("{}/{}.{}", folder.path(), number, kind);
}

struct Drawing {
  Figure figure;
  FigureData data;
};

std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::string bound(std::string text, const std::string& experiment) {
  constexpr std::string_view kField = "{experiment}";
  for (std::size_t at = text.find(kField); at != std::string::npos; at = text.find(kField, at)) {
    text.replace(at, kField.size(), experiment);
    at += experiment.size();
  }
  return text;
}

Drawing prepare(const FigureSource& source, const store::Store& store, const std::string& handout) {
  std::vector<store::Cell> parameters;
  if (source.sql.find("?1") != std::string::npos) parameters.push_back(store::text_cell(source.experiment));
  store::ResultSet result = store.query(source.sql, parameters);
  keep_models_of(handout, result);
  Drawing drawing;
  drawing.data = figure_data(source, result);
  Figure& figure = drawing.figure;
  figure.id = source.id;
  figure.experiment = source.experiment;
  figure.title = source.title;
  figure.caption = source.caption;
  if (!drawing.data.common.empty()) {
    figure.caption +=
        fmt::format("{}Throughout: {}.", figure.caption.empty() ? "" : " ", unmarked(drawing.data.common));
  }
  figure.fills = source.fills;
  figure.file = source.file;
  figure.notes = source.notes;
  figure.notes.insert(figure.notes.end(), drawing.data.notes.begin(), drawing.data.notes.end());
  const Provenance provenance = provenance_of(result, store);
  figure.footnote = provenance.footnote();
  figure.warning = provenance.warning();
  if (drawing.data.panels.empty()) {
    figure.missing = !source.empty.empty()
                         ? source.empty
                         : fmt::format("Not measured: `{}`.", bound(source.command, source.experiment));
  }
  return drawing;
}

// What a screen reader reads out: the picture in words.
std::string description(const Drawing& drawing) {
  std::string text = fmt::format("{} over {}", drawing.data.y_label, drawing.data.x_label);
  if (drawing.data.has_names()) text += fmt::format(". Series: {}", fmt::join(drawing.data.names, ", "));
  std::vector<std::string> panels;
  for (const FigurePanel& panel : drawing.data.panels) {
    if (!panel.title.empty()) panels.push_back(panel.title);
  }
  if (!panels.empty()) text += fmt::format(". Panels: {}", fmt::join(panels, "; "));
  return text + ".";
}

// A name within a page: letters, digits and '-'.
std::string page_name(const Figure& figure) {
  std::string name = "figure-" + figure.experiment + "-" + figure.id;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '-';
  }
  return name;
}

void fetch(Drawing& drawing, const TemporaryFolder& folder, std::size_t number, const std::string& failure) {
  const std::string drawn = read_bytes(file_in(folder, number, "svg"));
  // A process that was killed leaves an incomplete file.
  if (drawn.find("</svg>") == std::string::npos) {
    drawing.figure.missing =
        fmt::format("No picture: {}.", failure.empty() ? std::string("gnuplot left no file") : failure);
    return;
  }
  drawing.figure.svg = dress_svg(drawn, page_name(drawing.figure), drawing.figure.title, description(drawing));
  drawing.figure.pdf = read_bytes(file_in(folder, number, "pdf"));
}

}  // namespace

std::vector<Figure> draw_figures(std::span<const FigureSource> sources, const store::Store& store,
                                 const DrawOptions& options) {
  std::vector<Drawing> drawings;
  for (const FigureSource& source : sources) {
    Drawing drawing = prepare(source, store, options.handout);
    if (!source.optional || !drawing.data.panels.empty()) drawings.push_back(std::move(drawing));
  }
  std::string script;
  const TemporaryFolder folder;
  int number = 0;
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    if (drawings[i].data.panels.empty()) continue;
    script += figure_script(drawings[i].data, Terminal::svg, file_in(folder, i, "svg"), number++);
    if (options.pdf) script += figure_script(drawings[i].data, Terminal::pdf, file_in(folder, i, "pdf"), number++);
  }
  if (!script.empty()) {
    const fs::path file = folder.path() + "/script.gp";
    std::ofstream(file, std::ios::binary) << script;
    const std::string failure = run_gnuplot(options.gnuplot, file, options.timeout);
    for (std::size_t i = 0; i < drawings.size(); ++i) {
      if (!drawings[i].data.panels.empty()) fetch(drawings[i], folder, i, failure);
    }
  }
  std::vector<Figure> figures;
  for (Drawing& drawing : drawings) figures.push_back(std::move(drawing.figure));
  return figures;
}

}  // namespace syslab::report
