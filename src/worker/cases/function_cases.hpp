// Which cases a file has for a function that is to be judged (worker/cases/function_case.hpp runs one).
#pragma once

#include <string>
#include <vector>

#include "core/value.hpp"

namespace syslab::worker {

// Parameters of every such case: which function it is about, and which of its cases. The file's own axes come on top.
inline constexpr const char* kFunctionProblem = "problem";  // "softmax@1f2e3d4c"
inline constexpr const char* kFunctionCase = "case";

// What `cases` of a file gives: each case's axes and kFunctionCase, and the problem; in order, at least one. With
// `backward` each has its gradients beside it, as another case. Runs the files, behind walls where there are such.
// Error(usage), saying what is wrong with them. Both are "file.py:name"; `inputs` may be "manifest.json:manifest".
std::vector<Params> function_cases(const std::string& reference, const std::string& inputs, bool backward);

}  // namespace syslab::worker
