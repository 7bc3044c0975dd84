#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/text.hpp"
#include "report/figure/figure.hpp"
#include "report/sql_header.hpp"

namespace syslab::report {
namespace {

constexpr std::array<std::pair<std::string_view, FigureKind>, 7> kFigureKinds{{{"lines", FigureKind::lines},
                                                                               {"bars", FigureKind::bars},
                                                                               {"stacks", FigureKind::stacks},
                                                                               {"areas", FigureKind::areas},
                                                                               {"lanes", FigureKind::lanes},
                                                                               {"roofline", FigureKind::roofline},
                                                                               {"trace", FigureKind::trace}}};
const std::vector<std::string> kAxisScales{"linear", "log2", "log10", "text", "auto"};

// Reads the value of one header line; what it throws is prefixed with file and line by the caller.
using Setter = std::function<void(FigureSource&, const std::string&)>;

[[noreturn]] void refuse_figure(const std::string& why) { throw Error(ErrorKind::internal, why); }

// "a | b | c" as exactly `count` trimmed parts, or at least `least` with the rest empty.
std::vector<std::string> parts(const std::string& value, char separator, std::size_t least, std::size_t count,
                               std::string_view wanted) {
  std::vector<std::string> found;
  for (const std::string& part : split(value, separator)) found.push_back(trim(part));
  if (found.size() < least || found.size() > count ||
      std::any_of(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(least),
                  [](const std::string& part) { return part.empty(); })) {
    refuse_figure(fmt::format("'{}' should read {}", value, wanted));
  }
  found.resize(count);
  return found;
}

FigureKind kind_of(const std::string& value) {
  for (const auto& [name, kind] : kFigureKinds) {
    if (name == value) return kind;
  }
  refuse_figure(
      fmt::format("unknown kind of figure '{}'; there are lines, bars, stacks, areas, lanes, roofline, trace", value));
}

FigureAxis axis_of(const std::string& value) {
  const auto found = parts(value, '|', 3, 3, "column|unit|scale");
  if (std::find(kAxisScales.begin(), kAxisScales.end(), found[2]) == kAxisScales.end()) {
    refuse_figure(fmt::format("unknown scale '{}'; there are {}", found[2], fmt::join(kAxisScales, ", ")));
  }
  return {found[0], found[1], found[2]};
}

std::vector<FigureCeiling> ceilings_of(const std::string& value) {
  std::vector<FigureCeiling> ceilings;
  for (const std::string& one : split(value, ';')) {
    if (trim(one).empty()) continue;
    const auto found = parts(one, '|', 2, 3, "column|label or column|label|command");
    ceilings.push_back({found[0], found[1], found[2]});
  }
  return ceilings;
}

const std::map<std::string, Setter>& setters() {
  using S = FigureSource;
  static const std::map<std::string, Setter> kSetters{
      {"figure", [](S& s, const std::string& v) { s.kind = kind_of(v); }},
      {"title", [](S& s, const std::string& v) { s.title = v; }},
      {"caption", [](S& s, const std::string& v) { s.caption = v; }},
      {"experiment", [](S& s, const std::string& v) { s.experiment = v; }},
      {"x", [](S& s, const std::string& v) { s.x = axis_of(v); }},
      {"y", [](S& s, const std::string& v) { s.y = axis_of(v); }},
      {"x_name", [](S& s, const std::string& v) { s.x_name = v; }},
      {"series", [](S& s, const std::string& v) { s.series = v; }},
      {"panel",
       [](S& s, const std::string& v) {
         for (const std::string& column : split(v, ',')) s.panel.push_back(trim(column));
       }},
      {"flag", [](S& s, const std::string& v) { s.flag = v; }},
      {"end", [](S& s, const std::string& v) { s.end = v; }},
      {"apart", [](S& s, const std::string& v) { s.apart = v; }},
      {"interval",
       [](S& s, const std::string& v) {
         const auto found = parts(v, ',', 2, 2, "low, high");
         s.low = found[0];
         s.high = found[1];
       }},
      {"middle",
       [](S& s, const std::string& v) {
         const auto found = parts(v, ',', 3, 3, "median, low, high");
         s.middle = found[0];
         s.middle_low = found[1];
         s.middle_high = found[2];
       }},
      {"roof",
       [](S& s, const std::string& v) {
         const auto found = parts(v, '|', 2, 2, "bandwidth|peak");
         s.bandwidth = found[0];
         s.peak = found[1];
       }},
      {"ceiling", [](S& s, const std::string& v) { s.ceilings = ceilings_of(v); }},
      {"note", [](S& s, const std::string& v) { s.notes.push_back(v); }},
      {"fills", [](S& s, const std::string& v) { s.fills = parts_filled(v); }},
      {"command", [](S& s, const std::string& v) { s.command = v; }},
      {"empty", [](S& s, const std::string& v) { s.empty = v; }},
      {"optional",
       [](S& s, const std::string& v) {
         if (v != "yes" && v != "no") refuse_figure(fmt::format("optional is yes or no, found '{}'", v));
         s.optional = v == "yes";
       }},
  };
  return kSetters;
}

// What a whole header must hold, kind by kind.
std::string fault_of(const FigureSource& source, bool has_kind) {
  if (!has_kind) return "the header has no 'figure' (its kind)";
  if (source.title.empty()) return "the header has no 'title'";
  if (source.x.column.empty() || source.y.column.empty()) return "the header needs 'x' and 'y'";
  const bool lanes = source.kind == FigureKind::lanes;
  if (lanes != (source.y.scale == "text"))
    return "lanes stand for texts: y of lanes has the scale text, and no other's";
  if (lanes != !source.end.empty()) return "lanes, and nothing else, have an 'end'";
  if (source.kind != FigureKind::lines && !source.apart.empty()) return "'apart' belongs to lines";
  const bool stacked = source.kind == FigureKind::stacks || source.kind == FigureKind::areas;
  if (stacked && (source.series.empty() || source.y.scale != "linear")) {
    return "what is stacked has 'series', and the scale linear for y";
  }
  if ((lanes || source.kind == FigureKind::areas) && source.x.scale != "linear")
    return "x of lanes and areas is linear";
  const bool bars = source.kind == FigureKind::bars || source.kind == FigureKind::stacks;
  if (bars != (source.x.scale == "text")) return "bars stand over texts: x of bars has the scale text, and no other's";
  // A bar's length is its value: on a logarithmic scale it would be a matter of where the axis begins.
  if (bars && source.y.scale != "linear") return "y of bars has the scale linear";
  const bool roofline = source.kind == FigureKind::roofline;
  if (roofline != !source.bandwidth.empty()) return "a roofline, and nothing else, has a 'roof'";
  if (roofline && (source.x.scale != "log10" || source.y.scale != "log10"))
    return "both scales of a roofline are log10";
  if (source.kind != FigureKind::trace && (!source.middle.empty() || !source.flag.empty())) {
    return "'middle' and 'flag' belong to a trace";
  }
  return {};
}

}  // namespace

FigureSource parse_figure(const std::string& id, const std::string& text) {
  const std::string what = fmt::format("figure {}.sql", id);
  const SqlFile file = read_sql_file(what, "figures", text);
  FigureSource source;
  source.id = id;
  source.sql = file.sql;
  bool has_kind = false;
  for (const HeaderField& field : file.fields) {
    const auto setter = setters().find(field.key);
    try {
      if (setter == setters().end()) {
        std::vector<std::string> names;
        for (const auto& [name, set] : setters()) names.push_back(name);
        refuse_figure(unknown_name("header", field.key, names));
      }
      setter->second(source, field.value);
    } catch (const Error& error) {
      throw Error(ErrorKind::internal, fmt::format("{}, line {}: {}", what, field.line, error.what()));
    }
    has_kind = has_kind || field.key == "figure";
  }
  const std::string fault = fault_of(source, has_kind);
  if (!fault.empty()) throw Error(ErrorKind::internal, fmt::format("{}, line 1: {}", what, fault));
  if (source.command.empty()) source.command = "syslab run {experiment}";
  return source;
}

std::vector<FigureSource> figures_of(const std::string& experiment) {
  std::vector<FigureSource> figures;
  const auto add = [&](const Resource& file) {
    const std::string name(file.path.substr(file.path.rfind('/') + 1));
    const std::string id = name.substr(0, name.rfind('.'));
    const bool hidden =
        std::any_of(figures.begin(), figures.end(), [&](const FigureSource& figure) { return figure.id == id; });
    if (hidden) return;
    figures.push_back(parse_figure(id, std::string(file.text)));
    figures.back().experiment = experiment;
    figures.back().file = file.file;
  };
  for (const Resource& file : resources("experiments/" + experiment + "/figures/")) add(file);
  for (const Resource& file : resources("reports/figures/")) add(file);
  return figures;
}

}  // namespace syslab::report
