// The backend "nccl": each rank is a process with one GPU. NCCL is reached through a table of functions
// (comm/nccl/library.hpp), streams and memory through the device room; tests run all of this without a GPU, over CPU
// streams with another library behind the same table.
//
// NCCL's communicators are blocking: for non-blocking ones NCCL starts a thread per operation, which on 2 H200 slowed
// an all-reduce of 1 KiB from 43 to 144 µs. The blocking call that creates a communicator waits for all ranks; it runs
// on its own thread, watched with a deadline (comm/nccl/handle.hpp). Once connected, operations are queued without
// waiting. Any failure, here or on another rank, leads to ncclCommAbort on its own thread; since that may hang too,
// `exit` ends the process if it has not returned within `budget`.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.hpp"
#include "comm/nccl/options.hpp"
#include "comm/rendezvous/rendezvous.hpp"

namespace syslab::comm {

// One rank of `rendezvous.size()`. The rendezvous must outlive it; ranks exchange texts through it. A single rank does
// not load NCCL. Error(comm) at the limit, or if the ranks' NCCL versions, settings or GPUs do not match.
std::unique_ptr<Communicator> make_nccl(std::shared_ptr<Rendezvous> rendezvous, const CommunicatorOptions& options,
                                        const NcclOptions& nccl);
// A single rank on a device: operations are copies.
std::unique_ptr<Communicator> make_alone(device::Place place, const CommunicatorOptions& options);

// The library's own all-reduce (fp32 sums, in place) on the communicator of this rank: nothing is recorded, counted,
// checked or monitored. For measuring the cost of all that. Error(usage) for another backend's communicator, and for a
// single rank.
std::function<void(const TensorView& buffer, device::Stream stream)> raw_all_reduce(Communicator& ranks);

}  // namespace syslab::comm
