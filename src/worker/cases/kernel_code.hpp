// What a case ran on the GPU: the digests of its kernels' machine code (trace/kernel_code.hpp), as the fact "code" of
// its attempt. A process of its own asks, after the times were taken: whoever is listened to by CUPTI is slower, and a
// module's code is told once, when it is loaded. Of what runs in a process of its own (--mine) there are the names of
// its kernels and how often each was launched, as that process tells, another of the same files: a hint for people.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "core/text/json.hpp"
#include "trace/code_watch.hpp"
#include "worker/cases/case_context.hpp"
#include "worker/cases/input_sets.hpp"

namespace syslab::worker {

// Task `code`, in that process, before its first work on a GPU.
void listen_for_code();
// In place of CUPTI: a test's own; null: nobody.
void listen_for_code_by(std::unique_ptr<trace::CodeWatch> watch);
// There: runs the call twice, and emits what the second ran.
void tell_code(CaseContext& context, const Operation& operation, InputSets& sets, device::Stream stream);
// Of one rank, on all of them at once: runs `call` twice whether anybody listens or not, since others wait for it, each
// time behind `prepare`, which brings them together. What `prepare` runs is not told.
void tell_code(CaseContext& context, const std::function<void()>& prepare, const std::function<void()>& call,
               device::Place where);

// What the allocator of the case's GPU keeps goes back to the GPU: another process has work there now.
void forget_memory(const CaseRequest& request);

// For the host of that process. An object with "digest" and "kernels", or with "why" there is none: never throws. Null
// where nobody asked: the case is of the CPU, or SYSLAB_KERNEL_CODE=off. Of several ranks no worker knows alone: each
// says that it can tell, and the host asks all (runner/ranks/code.hpp).
Json code_of_case(const CaseRequest& request, std::chrono::milliseconds patience);

// What the process says, of its frames: "code" among the facts, or why not.
Json code_among(const std::vector<Json>& messages);

}  // namespace syslab::worker
