// The write-up: every problem of a hand-out in order, whose tables, sentences and figures are queries on the store.
#pragma once

#include <string>
#include <vector>

#include "registry/registry.hpp"
#include "report/table.hpp"
#include "store/store.hpp"

namespace syslab::report {

struct ReportOptions {
  std::vector<std::string> experiments;  // empty: every problem of the hand-out, then what no hand-out poses
  std::string handout = "2026";          // empty: both
  // Of the whole write-up: what the store has of the other hand-out alone is named, with the command that shows it.
  bool names_others = true;
  Format format = Format::markdown;
  // False: sentences made from the store are left out, and a marked empty place stands for each answer in words.
  bool answers = true;
  bool figures = true;
  // There is a folder to write to, so that Markdown and LaTeX may refer to files beside them.
  bool files = false;
};

struct ReportFile {
  std::string path;  // from where the report lies
  std::string bytes;
};

struct Report {
  std::string text;
  std::vector<ReportFile> files;  // pictures that the text refers to
};

// The whole report. Where nothing was measured it says "not measured", with the command that would.
Report render(const registry::Registry& registry, const store::Store& store, const ReportOptions& options);

}  // namespace syslab::report
