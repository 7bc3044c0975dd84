// A problem's part of the hand-in: each part that is asked for with its answer in one to three sentences, then the one
// table or figure that carries the point. All rows, laws and provenance are in the appendix (section.hpp).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/section.hpp"

namespace syslab::report {

struct AnswerOptions {
  std::string handout;              // empty: both
  bool answers = true;              // false: an empty place for each answer in words
  std::string own_words;            // the person's own, of this problem; empty: there are none
  std::string appendix;             // the file to refer to; empty: none is written
  std::string device;               // that the first page names as the one of all runs; empty: there are several
  std::vector<std::string> gpus{};  // with results, in the order in which a sentence or a table takes one
  bool only_words = false;          // neither tables nor figures
  bool is_page = true;              // with places that contents lead to; a terminal has few lines and no links
  bool smoke_is_told = false;       // of the whole store: not again in each sentence
};

struct Answered {
  std::vector<Block> blocks;
  std::string problem;
  int parts = 0;
  std::vector<std::string> open;  // letters of parts without an answer; of a problem without letters ""
};

// Captions of the tables shown so far, with the title of the first that has it.
using CaptionsShown = std::map<std::string, std::string>;

// `pictures` are those of the plan's experiments; the plan has a problem.
Answered answered(const SectionPlan& plan, const store::Store& store, const std::vector<Picture>& pictures,
                  const AnswerOptions& options, CaptionsShown& captions);

}  // namespace syslab::report
