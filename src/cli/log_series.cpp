#include "cli/log_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/log_queries.hpp"
#include "cli/output_file.hpp"
#include "cli/verbs/verbs.hpp"
#include "compare/revisions.hpp"
#include "core/error.hpp"
#include "core/quantity.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "report/cells.hpp"
#include "report/figure/svg.hpp"
#include "report/table.hpp"
#include "runner/environment.hpp"
#include "runner/interruption.hpp"
#include "session/capture.hpp"
#include "session/command_selection.hpp"
#include "session/selection.hpp"
#include "session/stored_case.hpp"
#include "stats/change_point.hpp"
#include "stats/verdict.hpp"
#include "store/cells.hpp"
#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

struct Suspect {
  std::size_t at = 0;                     // of the revision
  double log_ratio = 0;                   // of times
  std::optional<stats::Verdict> verdict;  // of the two measured in turns; nothing: they were not
  std::string text;
  bool same_kernels = false;  // the GPU ran the same kernels before and after
  bool is_found() const { return verdict == stats::Verdict::slower || verdict == stats::Verdict::faster; }
};

struct Series {
  std::string key, machine, params, case_text, implementation;
  std::string protocol;             // as the store words it, with its version if that is an old one
  std::string protocol_name, data;  // the options that measure alike
  std::string version, author;      // of the experiment; of what was handed in
  bool is_mine = false;
  bool measured_here = true;  // or vouched for (merge --trust)
  std::int64_t world_size = 1;
  Quantity quantity;                   // of a rate, `times` are those of one unit
  std::vector<std::string> revisions;  // in order of first measurement, or of commits where git knows them all
  std::map<std::string, std::vector<double>> times;
  std::map<std::string, std::set<std::string>> kernels;  // digests of what ran on a GPU, where they are known
  std::vector<Suspect> suspects;

  double at(std::size_t index) const {
    std::vector<double> sorted = times.at(revisions[index]);
    std::ranges::sort(sorted);
    return stats::quantile(sorted, 0.5);
  }
  // What people read: seconds, or the rate.
  double shown_at(std::size_t index) const { return quantity.is_rate() ? 1 / at(index) : at(index); }
  std::string text_at(std::size_t index) const { return text_of(quantity, at(index)); }
  std::string called() const {
    const std::string by = author.empty() || author == implementation ? "" : author;
    const char* const told = measured_here ? "" : "self-reported";
    if (by.empty() && measured_here) return implementation;
    return fmt::format("{} ({}{}{})", implementation, by, by.empty() || measured_here ? "" : ", ", told);
  }
};

std::string short_revision(const std::string& revision) {
  const bool changed = revision.ends_with("+changes");
  return revision.substr(0, 10) + (changed ? "+" : "");
}

std::string value_text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// Of text that is no JSON object: none.
Json params_of(const Series& series) {
  Json params = json_or_discarded(series.params);
  return params.is_object() ? params : Json::object();
}

bool wanted(const Series& series, const LogOptions& options, const std::vector<plan::AxisAssignment>& assignments) {
  const auto& names = options.implementations;
  if (!names.empty() &&
      std::ranges::none_of(names, [&](const auto& it) { return glob_match(it, series.implementation); })) {
    return false;
  }
  const Json params = params_of(series);
  return std::ranges::all_of(assignments, [&](const plan::AxisAssignment& one) {
    return params.contains(one.name) && std::ranges::find(one.values, value_text(params[one.name])) != one.values.end();
  });
}

// By commit time, where every revision is a commit of the repository here.
void sort_by_commit(Series& series) {
  if (series.is_mine || series.revisions.size() < 2) return;
  std::vector<std::string> words{"rev-list", "--no-walk=sorted"};
  for (const std::string& one : series.revisions) {
    if (!is_full_name(one)) return;
    words.push_back(one);
  }
  words.emplace_back("--");  // a file may be called so
  const std::optional<std::string> told = look_into(".", words);
  if (!told) return;
  std::vector<std::string> sorted = split(trim(*told), '\n');
  std::ranges::reverse(sorted);
  if (sorted.size() == series.revisions.size()) series.revisions = std::move(sorted);
}

// What a machine's results are called; what ran on the CPU of one with a GPU is that CPU's (v_attempt).
bool is_of(const Series& series, const std::string& machine) {
  return series.key == machine || series.key == machine + " cpu";
}

// "2.30 % more time (95 %: +2.10 % … +2.50 %)", of log(after / before) of times.
std::string measured_text(const Quantity& quantity, double log_ratio, const stats::Interval& of_times) {
  const stats::Interval shown = quantity.is_rate() ? stats::Interval{-of_times.high, -of_times.low} : of_times;
  return fmt::format("{} (95 %: {} … {})", words::change_in_words(quantity, log_ratio), words::change_text(shown.low),
                     words::change_text(shown.high));
}

// Of any version of the protocol: both sides of a comparison share it, whenever it was.
void look_up(const store::ResultSet& comparisons, Series& series, Suspect& suspect) {
  const std::string& before = series.revisions[suspect.at - 1];
  const std::string& after = series.revisions[suspect.at];
  const Json params = params_of(series);
  for (const auto& row : comparisons.rows) {
    // What was measured here is not judged by what somebody else says of it.
    const bool same_case = (row[16].integer != 0 || !series.measured_here) && is_of(series, row[0].text) &&
                           row[12].integer == series.world_size && row[13].integer == series.world_size &&
                           row[14].text == series.protocol_name && row[15].text == series.data &&
                           row[17].text == series.version && row[18].text == series.author &&
                           row[1].text == series.implementation && row[4].text == series.implementation &&
                           json_or_discarded(row[2].text) == params && json_or_discarded(row[3].text) == params;
    const bool forth = row[5].text == before && row[6].text == after,
               back = row[5].text == after && row[6].text == before;
    if (!same_case || !(forth || back)) continue;
    suspect.verdict = stats::verdict_of(row[7].text);
    if (back && suspect.verdict) suspect.verdict = stats::swapped(*suspect.verdict);
    // log(after / before) of times.
    const auto change = [&](std::size_t column) { return (forth ? 1 : -1) * std::log1p(row[column].real); };
    suspect.text = row[8].type == store::Cell::Type::real && row[9].type == store::Cell::Type::real
                       ? measured_text(series.quantity, change(8), {change(forth ? 9 : 10), change(forth ? 10 : 9)})
                       : row[11].text;
    if (suspect.verdict == stats::Verdict::unclear && !row[11].text.empty())
      suspect.text += ": " + printable(row[11].text);
  }
}

// Known of every attempt at both revisions, and one and the same.
bool ran_the_same(const Series& series, std::size_t at) {
  const std::set<std::string>&before = series.kernels.at(series.revisions[at - 1]),
        &after = series.kernels.at(series.revisions[at]);
  return before.size() == 1 && before == after && !before.begin()->empty();
}

// Cases of one function with two references have the same title, and so have cases of two versions of an experiment.
// Their titles then name the reference or the version.
void tell_titles_apart(std::vector<Series>& all) {
  std::map<std::string, std::vector<Series*>> same;
  for (Series& one : all) {
    same[fmt::format("{}\n{}\n{}\n{}\n{}\n{}", one.key, one.case_text, one.called(), one.is_mine, one.world_size,
                     one.protocol)]
        .push_back(&one);
  }
  for (const auto& [title, series] : same) {
    for (Series* one : series) {
      const Json params = params_of(*one);
      if (series.size() > 1 && params.contains("problem"))
        one->case_text += " problem=" + value_text(params["problem"]);
      if (std::ranges::any_of(series, [one](const Series* other) { return other->version != one->version; }))
        one->case_text += " version=" + one->version;
    }
  }
}

std::vector<Series> series_of(const store::Store& store, const LogOptions& options, double least) {
  std::vector<plan::AxisAssignment> assignments;
  for (const std::string& one : options.assignments) assignments.push_back(plan::parse_assignment(one));
  std::vector<Series> all;
  std::map<std::string, std::size_t> places;
  for (const auto& row : store.query(kTimes, {store::text_cell(options.experiment)}).rows) {
    Series one{.key = row[0].text,
               .machine = row[1].text,
               .params = row[2].text,
               .case_text = case_words(options.experiment, row[2].text, row[3].text),
               .implementation = row[4].text,
               .protocol = row[7].text,
               .protocol_name = row[12].text,
               .data = row[13].text,
               .version = row[14].text,
               .author = row[15].text,
               .is_mine = row[5].integer != 0,
               .measured_here = row[11].integer != 0,
               .world_size = row[6].integer,
               .quantity = quantity_of_stored(options.experiment, row[2].text)};
    if (!wanted(one, options, assignments)) continue;
    const std::string place = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", one.key, one.params, one.called(),
                                          one.is_mine, one.world_size, one.protocol, one.version, one.author);
    const auto [found, is_new] = places.emplace(place, all.size());
    if (is_new) all.push_back(std::move(one));
    Series& series = all[found->second];
    if (!series.times.contains(row[8].text)) series.revisions.push_back(row[8].text);
    series.times[row[8].text].push_back(row[9].real);
    series.kernels[row[8].text].insert(row[10].text);
  }
  tell_titles_apart(all);
  const store::ResultSet comparisons = store.query(kComparisons, {store::text_cell(options.experiment)});
  for (Series& series : all) {
    sort_by_commit(series);
    std::vector<double> logs;
    for (std::size_t i = 0; i < series.revisions.size(); ++i) logs.push_back(std::log(series.at(i)));
    for (const stats::ChangePoint& point : stats::change_points(logs, least)) {
      Suspect suspect{point.at, point.log_ratio, {}, {}, ran_the_same(series, point.at)};
      look_up(comparisons, series, suspect);
      series.suspects.push_back(std::move(suspect));
    }
  }
  std::ranges::stable_sort(all, {}, [](const Series& it) { return it.machine + '\n' + it.key; });
  return all;
}

std::string axes_text(const Series& series) {
  std::string text;
  const Json params = params_of(series);  // items() refers to it
  for (const auto& [axis, value] : params.items()) {
    text += " -a " + shell_word(axis + "=" + value_text(value));
  }
  if (series.world_size > 1) text += fmt::format(" -a world_size={}", series.world_size);
  return text;
}

// What the database calls a revision is somebody's text: a commit's full name is built, and nothing else.
bool can_be_built(const Series& series, const Suspect& suspect) {
  return !series.is_mine && is_full_name(series.revisions[suspect.at - 1]) &&
         is_full_name(series.revisions[suspect.at]);
}

std::string sentence(const Series& series, const Suspect& suspect, const std::string& experiment) {
  const std::string before = short_revision(series.revisions[suspect.at - 1]),
                    after = short_revision(series.revisions[suspect.at]);
  const std::string what = series.case_text + " " + series.implementation;
  if (suspect.is_found()) {
    return fmt::format("{}: {} than {} since {}, measured in turns: {}", what, stats::to_string(*suspect.verdict),
                       before, after, suspect.text);
  }
  if (suspect.verdict == stats::Verdict::same) {
    const bool rate = series.quantity.is_rate();
    return fmt::format("{}: {} and {} {} the same {}, measured in turns, {}; what moved by {} was the machine", what,
                       before, after, rate ? "have" : "take", rate ? series.quantity.unit : "time", suspect.text,
                       words::change_text(rate ? -suspect.log_ratio : suspect.log_ratio));
  }
  const std::string perhaps =
      fmt::format("{}: perhaps {} since {} ({})", what, suspect.log_ratio > 0 ? "slower" : "faster", after,
                  words::change_in_words(series.quantity, suspect.log_ratio));
  if (suspect.verdict) {
    return fmt::format("{}; {} and {} measured in turns: {} {}", perhaps, before, after,
                       stats::to_string(*suspect.verdict), suspect.text);
  }
  std::string text = fmt::format("{}{}; not a finding before {} was measured beside it in turns", perhaps,
                                 suspect.same_kernels ? ", with the same kernels on the GPU" : "", before);
  if (can_be_built(series, suspect)) {
    text += fmt::format(": syslab compare {} A:build={} B:build={}{} --impl {} --protocol {}{}", shell_word(experiment),
                        series.revisions[suspect.at - 1], series.revisions[suspect.at], axes_text(series),
                        shell_word(series.implementation), shell_word(series.protocol_name),
                        series.data == "normal" ? "" : " --data " + shell_word(series.data));
  }
  return text;
}

// A row of points a series, each scaled for itself from its smallest time, or rate, to its largest.
std::string svg_of(const std::vector<Series>& all, const std::string& experiment) {
  constexpr int kWidth = 860, kRow = 76, kTop = 34, kLeft = 20, kPlot = 820, kHigh = 40;
  const int height = kTop + kRow * static_cast<int>(all.size()) + 10;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "aria-labelledby=\"title\" font-family=\"sans-serif\" font-size=\"11\">\n<title id=\"title\">{2} over "
      "revisions</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<text x=\"{3}\" y=\"20\" font-size=\"14\">{2} over "
      "revisions</text>\n",
      kWidth, height, report::escape_xml(experiment), kLeft);
  for (std::size_t row = 0; row < all.size(); ++row) {
    const Series& series = all[row];
    const int top = kTop + kRow * static_cast<int>(row);
    double low = series.shown_at(0), high = low;
    for (std::size_t i = 0; i < series.revisions.size(); ++i)
      low = std::min(low, series.shown_at(i)), high = std::max(high, series.shown_at(i));
    const auto text = [&](double shown) {
      return text_of(series.quantity, series.quantity.is_rate() ? 1 / shown : shown);
    };
    const double span = std::max(high - low, 0.01 * low);
    const auto x = [&](std::size_t i) {
      return kLeft + (series.revisions.size() < 2
                          ? 0.0
                          : kPlot * static_cast<double>(i) / static_cast<double>(series.revisions.size() - 1));
    };
    const auto y = [&](double value) { return top + 18 + kHigh * (1 - (value - low) / span); };
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kLeft, top + 11,
                       report::escape_xml(fmt::format("{} · {} {} · {} to {}", series.machine, series.case_text,
                                                      series.called(), text(low), text(high))));
    std::string points;
    for (std::size_t i = 0; i < series.revisions.size(); ++i)
      points += fmt::format("{:.1f},{:.1f} ", x(i), y(series.shown_at(i)));
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#4477aa\"/>\n", points);
    for (std::size_t i = 0; i < series.revisions.size(); ++i) {
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"#4477aa\"><title>{}</title></circle>\n",
                         x(i), y(series.shown_at(i)),
                         report::escape_xml(short_revision(series.revisions[i]) + ": " + series.text_at(i)));
    }
    for (const Suspect& suspect : series.suspects) {
      const bool found = suspect.is_found();
      svg += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"{3}\"{4}/>\n<text x=\"{0:.1f}\" "
          "y=\"{5}\">{6}{7}</text>\n",
          x(suspect.at), top + 16, top + 60, found ? "#aa3377" : "#999999", found ? "" : " stroke-dasharray=\"3 3\"",
          top + 71, report::escape_xml(short_revision(series.revisions[suspect.at])), found ? "" : "?");
    }
  }
  return svg + "</svg>\n";
}

// False: a signal came, and what is left was not measured.
bool confirm(const Context& context, const LogOptions& options, const std::vector<Series>& all) {
  const std::string here = runner::comparability_key(runner::environment_facts());
  const Console silent = context.console.without_output();
  Context measuring{context.registry, context.global, context.console.json() ? silent : context.console,
                    context.arguments, context.places};
  for (const Series& series : all) {
    for (const Suspect& suspect : series.suspects) {
      if (suspect.verdict) continue;
      if (series.is_mine || !series.measured_here) {
        context.console.note(printable(series.implementation) +
                             (series.measured_here ? " is your own: of its revisions only digests are known"
                                                   : " is self-reported: it is not measured again"));
        break;
      }
      if (!is_of(series, here)) {
        context.console.note(printable(series.machine) + " is another machine: what it measured is confirmed there");
        break;
      }
      if (const std::string now = context.registry.find(options.experiment).version; series.version != now) {
        context.console.note(
            printable(fmt::format("{} is of version {}, and {} has version {} here: it is not measured "
                                  "again",
                                  series.case_text, series.version, options.experiment, now)));
        break;
      }
      CompareOptions compare;
      const std::string &before = series.revisions[suspect.at - 1], &after = series.revisions[suspect.at];
      if (!can_be_built(series, suspect)) {
        context.console.note(fmt::format("{} is no commit, or has changes that none holds: it cannot be built again",
                                         printable(is_full_name(before) ? after : before)));
        continue;
      }
      compare.selection.names = {options.experiment, "A:build=" + before, "B:build=" + after};
      compare.selection.implementations = {series.implementation};
      compare.selection.file_names = plan::FileNames::refused;
      const Json params = params_of(series);
      for (const auto& [axis, value] : params.items())
        compare.selection.assignments.push_back(axis + "=" + value_text(value));
      if (series.world_size > 1)
        compare.selection.assignments.push_back(fmt::format("world_size={}", series.world_size));
      compare.protocol = series.protocol_name;
      compare.data = series.data;
      compare.budget = options.budget;
      compare.delta = options.delta;
      compare.label = "log --confirm";
      try {
        execute(measuring, compare);
      } catch (const Error& error) {
        if (runner::Interruption::latest() != 0) return false;  // it was being built
        if (error.kind() != ErrorKind::usage) throw;
        context.console.note(error.what());  // a revision that is not here, or does not build
      }
      if (runner::Interruption::latest() != 0) return false;
    }
  }
  return true;
}

Json json_of(const Series& one, const std::string& experiment) {
  Json json{{"machine", one.machine},
            {"comparability_key", one.key},
            {"params", params_of(one)},
            {"implementation", one.implementation},
            {"version", one.version},
            {"author", one.author},
            {"protocol", one.protocol},
            {"world_size", one.world_size},
            {"measured_here", one.measured_here},
            {"unit", one.quantity.unit},
            {"better", one.quantity.is_rate() ? "larger" : "smaller"}};
  for (std::size_t i = 0; i < one.revisions.size(); ++i) {
    json["points"].push_back(
        {{"revision", one.revisions[i]}, {"seconds", one.at(i)}, {"attempts", one.times.at(one.revisions[i]).size()}});
    if (one.quantity.is_rate()) json["points"].back()["rate"] = one.shown_at(i);
  }
  json["changes"] = Json::array();
  for (const Suspect& suspect : one.suspects) {
    json["changes"].push_back({{"before", one.revisions[suspect.at - 1]},
                               {"revision", one.revisions[suspect.at]},
                               {"log_ratio", suspect.log_ratio},
                               {"same_kernels", suspect.same_kernels},
                               {"in_turns", suspect.verdict ? Json(stats::to_string(*suspect.verdict)) : Json()},
                               {"text", sentence(one, suspect, experiment)}});
  }
  return json;
}

// A table for each kind of machine, and what is known of each step.
std::string table_text(const std::vector<Series>& all, const std::string& experiment) {
  std::string text;
  for (std::size_t begin = 0; begin < all.size();) {
    std::vector<std::vector<std::string>> rows;
    bool times = false, rates = false;
    const std::size_t first = begin;
    for (; begin < all.size() && all[begin].key == all[first].key; ++begin) {
      const Series& one = all[begin];
      const std::size_t last = one.revisions.size() - 1;
      (one.quantity.is_rate() ? rates : times) = true;
      std::vector<double> shown;
      for (std::size_t i = 0; i <= last; ++i) shown.push_back(one.shown_at(i));
      rows.push_back({printable(one.case_text), printable(one.called()), one.protocol, std::to_string(last + 1),
                      short_revision(one.revisions[0]), one.text_at(0), short_revision(one.revisions[last]),
                      one.text_at(last), report::sparkline(shown)});
    }
    const char* const what = !rates ? "time" : times ? "time or rate" : "rate";
    const std::vector<report::Column> header{{"case", "1", "s", "left"},     {"implementation", "1", "s", "left"},
                                             {"protocol", "1", "s", "left"}, {"revisions", "1", "s", "right"},
                                             {"first", "1", "s", "left"},    {what, "1", "s", "right"},
                                             {"last", "1", "s", "left"},     {what, "1", "s", "right"},
                                             {"course", "1", "s", "left"}};
    text +=
        fmt::format("{}{} ({})\n", first == 0 ? "" : "\n", printable(all[first].machine), all[first].key.substr(0, 8));
    text += report::write_aligned(header, rows);
    for (std::size_t i = first; i < begin; ++i) {
      for (const Suspect& suspect : all[i].suspects) text += sentence(all[i], suspect, experiment) + "\n";
    }
  }
  return text;
}

}  // namespace

Exit log_series(const Context& context, const LogOptions& options) {
  const double least = options.delta ? percent_option("--delta", *options.delta) : 0.01;
  if (!options.output.empty()) require_writable(context, options.output);
  std::vector<Series> all;
  const auto stored = [&] { return store::Store::open(context.global.database, store::Mode::read_only); };
  {
    const store::Store store = stored();
    warn_of_future_runs(context, store);
    all = series_of(store, options, least);
  }
  if (all.empty())
    context.registry.find(options.experiment);  // or a usage error; what is stored may be another build's
  Exit exit = Exit::well;
  if (options.confirm) {
    if (!confirm(context, options, all)) exit = Exit::incomplete;
    all = series_of(stored(), options, least);
  }
  if (!options.output.empty()) write_output(context, options.output, svg_of(all, options.experiment));
  if (context.console.json()) {
    Json series = Json::array();
    for (const Series& one : all) series.push_back(json_of(one, options.experiment));
    context.console.print_document({{"experiment", options.experiment}, {"series", series}});
    return exit;
  }
  if (all.empty()) {
    context.console.print(fmt::format("no times of {} are stored here; `syslab run {}` measures some\n",
                                      printable(options.experiment), printable(options.experiment)));
    return exit;
  }
  context.console.print(table_text(all, options.experiment));
  return exit;
}

}  // namespace syslab::cli
