// A case that is a data-parallel training step, certified and checked on every rank and timed with all in step: what
// the experiments on data parallelism have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/data_parallel/laws.hpp"
#include "registry/registry.hpp"

namespace syslab {

// Axes: those of the model, `batch` being the rows of all ranks; `model`, by default these; `strategy`, one of these
// words by default and any of parallel::strategies() or "none" (the same step without communication, the ideal) when
// asked for; `wire`, where "none" is one of them; and, where there are `bucket_mb`, an axis of them: the limits of
// strategy `bucketed`, 0 for all others.
// Presets, metrics and the body are there; a title, a question and problems are to be added.
registry::Builder ddp_experiment(const std::string& id, const std::vector<std::string>& strategies,
                                 const std::vector<std::string>& models,
                                 const std::vector<std::int64_t>& bucket_mb = {});

// Somebody's Python class may be checked in its place: by laws, on ranks of its own (--mine).
// `timed_by`: the experiment that times it.
void take_classes(registry::Builder& experiment, data_parallel::Strategy strategy, std::string timed_by);

// Somebody's Python class may be timed as the strategy of this word (timed_class.hpp). `with_laws`: and searched, too.
void time_classes(registry::Builder& experiment, data_parallel::Strategy strategy, const std::string& word,
                  bool with_laws = false);

}  // namespace syslab
