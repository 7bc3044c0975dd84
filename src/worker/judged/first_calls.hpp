// A judged process that may compile before it answers a call of a new kind, and imports its libraries before the first:
// what its first calls take, which counts in no law's share of the time (src/runner/law_shares.hpp), but has a limit of
// its own.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "core/call_channel.hpp"
#include "core/declares_domain.hpp"

namespace syslab::worker {

// Of one judged process, over all of its cases.
struct FirstCallsSoFar {
  std::set<std::string> kinds;
  Nanoseconds spent{};  // by those that took longer than any other does, at most kMostFirstCalls
};

constexpr std::chrono::seconds kMostFirstCalls{60};
// A law's calls take milliseconds: who takes longer the first time compiles, or loads.
constexpr std::chrono::milliseconds kLongFirstCall{100};

// What is another kind of call. On a GPU each may be compiled for; on a CPU a slow kernel is slow at every shape, and
// only the first call of a function waits for imports and torch.compile.
enum class CallKinds { by_shape, by_function };

class FirstCalls : public CallChannel, public DeclaresDomain {
 public:
  // `asked` is a DeclaresDomain, too. `begins` is called before each first call while there is time left for them.
  FirstCalls(std::shared_ptr<CallChannel> asked, CallKinds kinds, FirstCallsSoFar& so_far,
             std::function<void()> begins);

  Nanoseconds call(std::string_view function, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs,
                   const Params& options) override;
  const Json& declared_domain() const override;

 private:
  std::shared_ptr<CallChannel> asked_;
  CallKinds kinds_;
  FirstCallsSoFar& so_far_;
  std::function<void()> begins_;
};

}  // namespace syslab::worker
