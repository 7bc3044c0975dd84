// What a gate tells GitHub Actions: an annotation for each case that is not well, and a page for the job's summary.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"
#include "session/context.hpp"
#include "store/store.hpp"
#include "verdict/judgement.hpp"

namespace syslab::cli {

struct GatedLine {
  std::string title;
  verdict::Judgement judgement;
  std::string file;  // of somebody's own implementation; empty: there is none to point at
};

// The file that an annotation points at: from the folder GITHUB_WORKSPACE on where it lies in it.
std::string annotated_file(const std::vector<Submitted>& mine, std::string_view implementation);

// "::error file=flash.py,title=…::…" for what is slower or wrong, "::warning …" for what has no verdict; a line each.
std::string github_annotations(const std::vector<GatedLine>& lines, const std::vector<std::string>& missing);
// Markdown: the verdicts in a table, those that are not well first. `about_pin`: a sentence above it, or empty.
std::string github_summary(const std::string& against, const std::vector<GatedLine>& lines,
                           const std::vector<std::string>& missing, const std::string& about_pin = {});

// Error(usage) unless GITHUB_STEP_SUMMARY names a file that can be written to; before anything is measured.
void require_github();
// Prints the annotations (to standard error where standard output is JSON) and adds the page to GITHUB_STEP_SUMMARY.
void tell_github(const Context& context, const std::string& against, const std::vector<GatedLine>& lines,
                 const std::vector<std::string>& missing, const std::string& about_pin);

}  // namespace syslab::cli
