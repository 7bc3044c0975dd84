// The transformer's gradients as pieces: its arena lies in the order in which a backward pass finishes them.
#pragma once

#include <vector>

#include "model/arena.hpp"
#include "planning/pieces.hpp"

namespace syslab::parallel {

GradientPieces pieces_of(const model::ParameterArena& arena);
// By parameter (registration order, as model::GradFinal tells them), its piece.
std::vector<int> piece_of_parameter(const model::ParameterLayout& layout);

}  // namespace syslab::parallel
