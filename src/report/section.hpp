// One problem's part of a report: what it asks, what is to be handed in and where that stands, and then the tables,
// sentences, figures and laws of the experiments that answer it.
#pragma once

#include <string>
#include <vector>

#include "registry/experiment.hpp"
#include "report/deliverables.hpp"
#include "report/document.hpp"
#include "report/standing.hpp"
#include "store/store.hpp"

namespace syslab::report {

// A problem of the hand-out (null: posed by none) and the experiments that are registered for it (perhaps none).
struct SectionPlan {
  const Problem* problem = nullptr;
  std::vector<const registry::Experiment*> experiments;
};

// All tables and sentences of an experiment in order of their file names; then, where there is anything, what was
// compared and what others published; its laws last.
std::vector<Table> tables_of(const registry::Experiment& experiment, const store::Store& store);

// Their sources, without a query.
std::vector<TableSource> table_sources(const registry::Experiment& experiment);

// A table that all experiments share: reports/tables/<name>.sql.
Table shared_table(const store::Store& store, const std::string& name, const std::string& experiment = {});

// Of those that stand once in an appendix, about all experiments: runs, failures, the leaderboard.
std::vector<TableSource> sources_of_the_whole();

struct SectionOptions {
  std::string handout;  // empty: both
  bool answers = true;
};

// What each of the plan's experiments has to show; `pictures` are those of all experiments.
std::vector<Shown> shown_of(const SectionPlan& plan, const store::Store& store, const std::vector<Picture>& pictures);

// `pictures` are those of the plan's experiments.
std::vector<Block> section(const SectionPlan& plan, const store::Store& store, const std::vector<Picture>& pictures,
                           const SectionOptions& options);

// Where all that shows times is to be warned of, the section says it once, before the block at `place`, and not each
// block again. Where only some of it is, each says it of itself: above all it would be said of good numbers too.
void warn_once(std::vector<Block>& blocks, std::size_t place);

}  // namespace syslab::report
