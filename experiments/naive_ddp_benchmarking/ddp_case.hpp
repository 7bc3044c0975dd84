// A case that is a data-parallel training step, certified and checked on every rank and timed with all in step: what
// the experiments on data parallelism have in common.
#pragma once

#include <string>
#include <vector>

#include "registry/registry.hpp"

namespace syslab {

namespace worker {
class CaseContext;
}

// Axes: those of the model, `batch` being the rows of all ranks; `strategy`, one of these words by default and any of
// parallel::strategies() or "none" (the same step without communication, the ideal) when asked for. The presets smoke
// and laptop, metrics and the body are there.
registry::Builder ddp_experiment(std::string id, const std::vector<std::string>& strategies);

// With an axis `bucket_mb`: the limit of strategy `bucketed`, 0 for all others.
registry::Builder& with_buckets(registry::Builder& builder, const std::vector<std::int64_t>& megabytes);

}  // namespace syslab
