// The backend "nccl": ranks that are processes with a GPU each. NCCL is reached through a table of functions
// (comm/nccl/library.hpp), streams and memory through the device room; over the CPU's streams, another library behind
// the same table runs all of this without a GPU, which is how it is tested.
//
// NCCL's communicators are blocking ones: of the others, NCCL starts a thread for every operation, which on 2 H200 took
// an all-reduce of 1 KiB from 43 to 144 µs. A blocking call that makes a communicator waits for all ranks; it runs on a
// thread of its own, on which this one looks with a deadline (comm/nccl/handle.hpp). Operations are queued without
// waiting, once connected. What fails, here or on another rank, ends in ncclCommAbort on a thread of its own; as that,
// too, may hang, the process ends by `exit` when it has not returned within `budget`.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.hpp"
#include "comm/nccl/options.hpp"
#include "comm/rendezvous/rendezvous.hpp"

namespace syslab::comm {

// One rank of `store.size()`. The store must outlive it; texts that ranks exchange go through it. Alone, no NCCL is
// opened. Error(comm) at the limit, or where the ranks' NCCL, their settings or their GPUs do not fit together.
std::unique_ptr<Communicator> make_nccl(std::shared_ptr<Store> store, const CommunicatorOptions& options,
                                        const NcclOptions& nccl);
// One rank alone on a device: operations are copies, and nobody is asked.
std::unique_ptr<Communicator> make_alone(device::Place place, const CommunicatorOptions& options);

// The library's own all-reduce (fp32 sums, in place) on the communicator of this rank: nothing is recorded, counted,
// checked or watched. For measuring what all that costs. Error(usage) for another backend's communicator, and for one
// rank alone.
std::function<void(const TensorView& buffer, device::Stream stream)> raw_all_reduce(Communicator& ranks);

}  // namespace syslab::comm
