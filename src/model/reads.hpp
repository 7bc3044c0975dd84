// Which weights the passes of a model read, in order: the requests to a ParameterSource, known beforehand.
#pragma once

#include <vector>

#include "model/parameters.hpp"
#include "model/recompute.hpp"

namespace syslab::model {

// Brackets by their first tensor, norms too. Of a forward pass alone:
std::vector<int> forward_reads(const ParameterLayout& layout);
// Of a forward pass that keeps what a backward pass reads, and that backward pass: recomputed layers are read again, a
// norm with a recomputed result (Kernels::keeps_all) once more, and the embedding is not read backward.
std::vector<int> training_reads(const ParameterLayout& layout, Recompute recompute, bool keeps_all = false);

}  // namespace syslab::model
