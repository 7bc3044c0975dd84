// Calls of a library on a GPU while others of its calls run in other streams: what calls share without a stream's
// order, such as memory of the library's own, shows only so.
//
//   beside.queue_with(request, tensors, 4, stream, body);   // then stream and all others are idle
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "device/buffer.hpp"
#include "device/gate.hpp"
#include "device/stream.hpp"
#include "worker/judged/call.hpp"
#include "worker/judged/serve_calls.hpp"

namespace syslab::worker {

class CallsBeside {
 public:
  explicit CallsBeside(const OpenCallee& open) : open_(open) {}

  // Queues body() in `own` a few times, and before, between and behind these the same call of the library in `streams`
  // less one other streams, on inputs in reverse and in memory of its own; all of it begins at once. `tensors`: the
  // host's. Throws what calls throw.
  void queue_with(const CallRequest& request, const std::byte* tensors, int streams, device::Stream own,
                  const std::function<void()>& body);

 private:
  struct Other {
    Other(const OpenCallee& open, device::Place place);

    device::OwnedStream stream;
    device::Gate gate;
    std::unique_ptr<Callee> callee;
    device::Buffer copy;
  };

  const OpenCallee& open_;
  std::vector<std::unique_ptr<Other>> others_;
  std::unique_ptr<device::Gate> own_gate_;
};

// The tensors of a call in order, inputs first: each by its name, at its place in `memory`.
struct TensorsOfCall {
  std::vector<NamedInput> inputs;
  std::vector<NamedOutput> outputs;
};
TensorsOfCall tensors_of(const CallRequest& request, std::byte* memory);

}  // namespace syslab::worker
