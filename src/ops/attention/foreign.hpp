// An implementation in another process (a student's autograd.Function, PyTorch's own) as a rung of the ladder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/call_channel.hpp"
#include "ops/attention/attention.hpp"

namespace syslab::attention {

// In what company calls of implementations in other processes are made, as long as this lives: they say so in options
// that docs/worker-wire.md names. One at a time in a process.
class Company {
 public:
  struct Of {
    int streams = 1;  // on a GPU, while calls of other values run in so many streams less one
    // Of an autograd.Function, a forward pass of this problem and other values before what one gave is read.
    std::optional<Problem> interleaved{};
    // How dO lies that autograd hands over: "transposed", "expanded"; empty: contiguous. "frozen": q, and k and v, want
    // their gradients in calls of their own; "none": none is wanted; "same": one tensor is q, k and v, and its gradient
    // dq, dk and dv; "kept": a second backward pass over a kept graph is what is read. The text outlives the company.
    std::string_view gradient{};
    bool first = false;  // the next one is the first that a fresh process is asked, under a law
  };
  explicit Company(Of of);
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;
  ~Company();
  static void add_to(Params& options);
};

// forward calls "attention_forward" with inputs q, k, v and outputs out, lse; backward "attention_backward" with q, k,
// v, out, lse, dout and outputs dq, dk, dv. Options: causal (0 none, 1 top-left, 2 bottom-right), scale.
Rung foreign_rung(std::string name, std::string language, std::string digest, std::shared_ptr<CallChannel> channel);

}  // namespace syslab::attention
