// From a case of the lab to the training step of one of several ranks: what train/params.hpp is for a rank alone.
//
//   const train::WorkloadOptions step = rank_workload(params, rung, ranks);   // of `batch` rows this rank's
//   const auto ranks = in_step(request, rank_case);                           // the others, met and kept in step
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/rank_training.hpp"
#include "core/dtype.hpp"
#include "core/value.hpp"
#include "device/device.hpp"
#include "model/precision.hpp"
#include "train/ladder.hpp"
#include "train/workload.hpp"
#include "trials/case_ranks.hpp"

namespace syslab::parallel {

// Axes as train::workload_from() reads them, `batch` being the rows of all ranks. Error(usage) for what cannot be, and
// where the rows do not divide evenly.
train::WorkloadOptions rank_workload(const Params& params, const train::Rung& rung, std::int64_t ranks);

// Why several ranks cannot take such a step although one may: only an update is what their gradients meet for.
std::optional<std::string> refusal_on_ranks(train::Mode mode);

// The dtype in which axis `wire` has gradients travel; nothing where there is no such axis, and for "own": as they lie.
std::optional<DType> wire_of(const Params& params);

// Why gradients cannot travel in `wire` (SyncOptions); nothing: as they lie.
std::optional<std::string> refusal_on_wire(std::optional<DType> wire, model::Precision precision);

// Why a rung cannot run a case of an experiment with axis `wire`: RankTrainingCases::refusal, or the wire's.
std::optional<std::string> refusal_with_wire(const Params& params, std::string_view rung);

// Why the backend that the axis asks for joins no ranks on `device`, on which `name` computes; nothing where it does.
std::optional<std::string> refusal_of_backend(const Params& params, std::string_view name, device::Kind device);

// The word of comm::connect() for what axis `backend` says, of ranks that compute on `device`.
std::string backend_of(const Params& params, device::Kind device);

// What that backend holds on a rank besides, in bytes of the memory that training uses.
double backend_bytes(const Params& params, int ranks);

// Connects the ranks of a case and keeps them in step (a worker::RankCase with `device` set); returns their
// communicator. As join().
template <typename Request, typename Case>
std::shared_ptr<comm::Communicator> in_step(const Request& request, Case& rank_case) {
  std::shared_ptr<comm::Communicator> ranks = join(case_rank(request, backend_of(request.params, rank_case.device)));
  keep_in_step(rank_case, *ranks);
  return ranks;
}

// What the lab asks about such steps before they run; `expect` refuses rows as rank_workload() does.
RankTrainingCases rank_training_cases();

}  // namespace syslab::parallel
