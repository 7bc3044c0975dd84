// The machine code of the kernels that the ranks of a case ran on GPUs, as the fact "code" of its attempt. No rank
// knows it alone, and whoever is listened to is slower: once a case was measured well, its ranks are started once more,
// each in a process that listens (worker/cases/kernel_code.hpp), and make one step together.
#pragma once

#include <chrono>
#include <string>

#include "core/text/json.hpp"
#include "runner/worker_process.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::runner {

// Whether SYSLAB_KERNEL_CODE=ranks asks for it of a run, each of whose cases starts its ranks once more then: some
// three seconds of a case that takes five (two H200s). A comparison asks without it, once a side.
bool is_code_of_ranks_wanted();

// `facts`, of ranks that ended ok, with "code" of all of them in the place of what each said that it could tell; as
// they are where none did (the CPU, SYSLAB_KERNEL_CODE=off, a worker of an older build). Takes at most a minute, ends
// well before `deadline`, and all in all no more than a minute and a quarter of the time since the first was asked.
// "why" says why there is no digest; nothing that was measured is touched. Only exceptions of the watch's heartbeat
// propagate.
std::string with_code_of_ranks(const std::string& facts, const worker::CaseRequest& measured,
                               const WorkerProcess::Command& command, std::chrono::milliseconds limit_of_waits,
                               Clock::time_point deadline, Watch& watch);

// Of what each rank told, in their order: "digest" over which machine code every rank launched how often, whatever the
// order in which its streams did; "kernels" of all together. Or "why": the first rank without, which is named. Where
// ranks ran other kernels than rank 0 "ranks_differ" lists them.
Json joined_code(const std::vector<Json>& of_ranks);

}  // namespace syslab::runner
