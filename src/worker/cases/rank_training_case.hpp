// A training step of several ranks as a case of the lab.
//
//   worker::run_rank_training(context, measured.device, measured.refusal, [&](worker::RankCase& made) {
//     const std::shared_ptr<comm::Communicator> ranks = parallel::in_step(context.request(), made);
//     made.check = [&, ranks](device::Stream stream) { return measured.check(*ranks, stream); };
//     made.start = [&, ranks](device::Stream stream) { return started(measured, *ranks, stream); };
//   });
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/measured_step.hpp"
#include "worker/cases/case_context.hpp"
#include "worker/cases/rank_case.hpp"

namespace syslab::worker {

// Steps with new tokens each and a finite loss.
RankSeries training_steps(const std::shared_ptr<StepWorkload>& workload);

// The same, with something stored of each step: `step` takes one, and `keep` stores something of it before the next;
// for the last step it is called at the end.
RankSeries kept_steps(const std::shared_ptr<StepWorkload>& workload, std::function<void()> step,
                      std::function<void()> keep);

// Metrics of every training step, of this rank's: tokens of a rank's step, parameters of the model, loss over the rows
// of all ranks. `seconds`: of each step.
void tell_training(CaseContext& context, double tokens, double parameters, double loss,
                   const std::vector<double>& seconds);

// Series "forward", "backward" and "update" of steps that were kept; nothing of none.
void emit_phases(CaseContext& context, std::span<const PhaseEnds> steps);

// A stretch of a step, in seconds from its beginning.
void emit_span(CaseContext& context, std::string track, std::string name, std::string category, double begin,
               double end);

// The journey on each rank: meets the others, certifies and checks what is measured, and times what is started. `meet`
// joins the others and fills the case: what keeps it in step with them, `check` and `start`. Of the certificate
// (kCertificate) `check` brings what held, or Error(check). Unsupported with the reason `refusal`, before there is
// a rank to meet, where it cannot be measured here.
void run_rank_training(CaseContext& context, device::Kind device, const std::optional<std::string>& refusal,
                       const std::function<void(RankCase&)>& meet);

}  // namespace syslab::worker
