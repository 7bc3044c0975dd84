#include "worker/judged/first_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

namespace syslab::worker {
namespace {

// What a compiler makes code of its own for: the dtypes, the innermost width, which of the other sizes are 1 or
// multiples of 16, and the options.
std::string kind_of(std::string_view function, std::span<const NamedInput> inputs, const Params& options) {
  std::string kind = fmt::format("{} {}", function, options.to_json().dump());
  for (const NamedInput& input : inputs) {
    const std::vector<std::int64_t> sizes = input.view.shape.to_vector();
    kind += fmt::format(" {}", to_string(input.view.dtype));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const bool innermost = i + 1 == sizes.size();
      kind += innermost ? fmt::format(",{}", sizes[i]) : sizes[i] == 1 ? ",1" : sizes[i] % 16 == 0 ? ",16n" : ",n";
    }
  }
  return kind;
}

// Counts what the call takes, also of one that throws: it may have compiled before.
class Counted {
 public:
  explicit Counted(Nanoseconds& spent) : spent_(spent) {}
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    const Nanoseconds took = std::chrono::steady_clock::now() - began_;
    if (took >= kLongFirstCall) spent_ = std::min<Nanoseconds>(kMostFirstCalls, spent_ + took);
  }

 private:
  Nanoseconds& spent_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

FirstCalls::FirstCalls(std::shared_ptr<CallChannel> asked, CallKinds kinds, FirstCallsSoFar& so_far,
                       std::function<void()> begins)
    : asked_(std::move(asked)), kinds_(kinds), so_far_(so_far), begins_(std::move(begins)) {}

Nanoseconds FirstCalls::call(std::string_view function, std::span<const NamedInput> inputs,
                             std::span<const NamedOutput> outputs, const Params& options) {
  const auto kind = [&] {
    return kinds_ == CallKinds::by_function ? std::string(function) : kind_of(function, inputs, options);
  };
  const bool counts = so_far_.spent < kMostFirstCalls && so_far_.kinds.insert(kind()).second;
  if (!counts) return asked_->call(function, inputs, outputs, options);
  begins_();
  const Counted counted(so_far_.spent);
  return asked_->call(function, inputs, outputs, options);
}

const Json& FirstCalls::declared_domain() const {
  return dynamic_cast<const DeclaresDomain&>(*asked_).declared_domain();
}

}  // namespace syslab::worker
