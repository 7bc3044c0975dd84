// Calls that compute nothing, between those that are timed: what handing one over takes (measure/resolution.hpp).
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "worker/judged/foreign.hpp"

namespace syslab::worker {

// Between calls of which the handing over is in their time: after each of the first, then after every fourth, so that
// both meet the same moments. Of calls that take long few are enough: it is a small part of them.
bool ForeignWorker::wants_empty_call(const CallRequest& request) const {
  constexpr std::int64_t kFirst = 64, kFirstOfLong = 16, kEvery = 4;
  constexpr std::chrono::milliseconds kLong{10};
  if (!serves_empty_ || guarded_ || request.inputs.empty() || !clock_.by_ours()) return false;
  const std::int64_t had = clock_.empty_calls();
  const std::int64_t first = clock_.last(request.function) < kLong ? kFirst : kFirstOfLong;
  return had < first || kEvery * had < clock_.calls_by_ours();
}

// As another call of the same inputs and outputs. What fails here fails in the next call, too, which says so.
void ForeignWorker::call_empty(const CallRequest& like, std::span<const NamedInput> inputs) {
  CallRequest request = like;
  request.release = false;
  const bool with_results = clock_.empty_calls() % 2 != 0;
  request.empty = with_results ? EmptyCall::with_results : EmptyCall::plain;
  Params options;
  for (const auto& [name, value] : like.options) {
    if (name != "examine") options.set(name, value);
  }
  request.options = std::move(options);
  segment_.arrange(request.inputs, request.outputs);
  request.memory_bytes = segment_.bytes();
  CallClock::Readings spent;
  const auto result = call_reply_from_json(run(request, inputs, spent, [] {}));
  if (std::holds_alternative<Returned>(result)) {
    clock_.take_empty(spent.ours, with_results);
  } else {
    serves_empty_ = false;
  }
}

}  // namespace syslab::worker
