// Ranks with identical models: initialises and verifies them.
//
//   require_agreement(ranks, "the model", description);     // before anything moves
//   make_replicas(ranks, weights, stream);                  // rank 0's, on all
//   … after some steps …
//   require_replicas(ranks, weights, stream);
//
// All of these are collective and wait. They throw the same error on every rank; a slower rank may instead see the end
// of the communication, with the same text as its reason.
#pragma once

#include <string>
#include <string_view>

#include "comm/communicator.hpp"
#include "core/tensor.hpp"

namespace syslab::parallel {

// Error(usage) on every rank unless all give the same text, with the first line that differs and its rank.
void require_agreement(comm::Communicator& ranks, std::string_view what, const std::string& text);

// Every rank's weights become rank 0's: trained ones and frozen ones alike, which is why a whole plane is given. Waits,
// and holds their digests against each other.
void make_replicas(comm::Communicator& ranks, const TensorView& weights, device::Stream stream);

// Error(check) on every rank unless all hold the same bits, with the ranks that differ from rank 0. Told by digests of
// their device (device/digest.hpp), so it costs one pass over the weights, which are contiguous.
void require_replicas(comm::Communicator& ranks, const ConstTensorView& weights, device::Stream stream);

}  // namespace syslab::parallel
