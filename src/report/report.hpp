// The write-up: every problem of a hand-out in order, with tables, sentences and figures from queries on the store.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "registry/registry.hpp"
#include "report/first_page.hpp"
#include "report/table.hpp"
#include "store/store.hpp"

namespace syslab::report {

// Of the whole write-up, when no experiment is named.
enum class Extent {
  hand_in,   // the answers, each with at most a table or a figure
  appendix,  // all rows, figures, laws and provenance; experiments that are named are always shown so
};

struct ReportOptions {
  std::vector<std::string> experiments;  // empty: every problem of the hand-out, then what no hand-out poses
  Extent extent = Extent::hand_in;
  std::string appendix;                          // the file of it beside a hand-in, which refers to it; empty: none
  std::string standing;                          // "25 of 137 points" that measurements not made are worth
  std::vector<Missing> missing;                  // for the first page
  std::map<std::string, std::string> own_words;  // by problem: the person's own
  std::string handout = "2026";                  // empty: both
  // Of the whole write-up: what the store has of the other hand-out alone is named, with the command that shows it.
  bool names_others = true;
  Format format = Format::markdown;
  // False: sentences made from the store are left out, and a marked empty place stands for each answer in words.
  bool answers = true;
  bool figures = true;
  // There is a folder to write to, so that Markdown and LaTeX can refer to files next to them.
  bool files = false;
  // Told before each part is made: its name, how many came before it, how many there are. Null: nobody listens.
  std::function<void(const std::string& part, std::size_t done, std::size_t all)> progress;
};

struct ReportFile {
  std::string path;  // from where the report lies
  std::string bytes;
};

struct Report {
  std::string text;
  std::vector<ReportFile> files;  // what the text refers to: pictures, the appendix
};

// What a report is made by: a table, a sentence or a figure, and its query.
struct SourceFile {
  std::string experiment, kind, title, file;  // kind: "table", "sentence", "figure"; file: from the source root
};
// In the order of the report's sections; of `options` what chooses them counts.
std::vector<SourceFile> sources(const registry::Registry& registry, const ReportOptions& options);

// The whole report. Where nothing was measured it says "not measured", with the command that would.
Report render(const registry::Registry& registry, const store::Store& store, const ReportOptions& options);

}  // namespace syslab::report
