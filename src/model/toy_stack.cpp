#include "model/toy_stack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"
#include "core/text/named.hpp"

namespace syslab::model {
namespace {

// Counts how many objects are alive, and the most at once.
struct Gauge {
  std::int64_t now = 0, most = 0;
};

// A number that is counted while it is alive.
class Counted {
 public:
  Counted(double value, Gauge& gauge) : value_(value), gauge_(gauge) {
    gauge_.most = std::max(gauge_.most, ++gauge_.now);
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  Counted(Counted&& other) = delete;
  ~Counted() { --gauge_.now; }
  double value() const { return value_; }

 private:
  double value_;
  Gauge& gauge_;
};

std::int64_t ceil_log2(std::int64_t n) { return std::bit_width(static_cast<std::uint64_t>(n - 1)); }
std::int64_t ceil_sqrt(std::int64_t n) {
  auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (root * root < n) ++root;
  return root;
}

// C(n, k); the sizes here keep it far below 2^63.
std::int64_t choose(std::int64_t n, std::int64_t k) {
  std::int64_t result = 1;
  for (std::int64_t i = 1; i <= std::min(k, n - k); ++i) result = result * (n - i + 1) / i;
  return k > n ? 0 : result;
}

// The fewest blocks that are run forward without their residuals on the way backward through n, with s streams.
std::int64_t fewest_advances(std::int64_t n, std::int64_t s) {
  if (n <= 1) return 0;
  if (s == 1) return n * (n - 1) / 2;
  std::int64_t r = 0;
  while (choose(s + r, s) < n) ++r;
  return r * n - choose(s + r, s + 1);
}

class Stack {
 public:
  Stack(Scheme scheme, std::int64_t blocks, std::uint64_t seed, ToyCourse course)
      : scheme_(scheme), blocks_(blocks), keeps_course_(course == ToyCourse::kept) {
    const RandomStream random = RandomStream::derive(seed, "toy_stack", "weights", "values");
    for (std::int64_t i = 0; i <= blocks; ++i) {
      drawn_.push_back(1 + 0.1 * static_cast<double>(random.normal(static_cast<std::uint64_t>(i))));
    }
    gradients_.resize(drawn_.size());
  }

  ToyRun run() {
    const Counted input(drawn_[0], streams_);
    reverse(0, blocks_, input, scheme_ == Scheme::binomial ? 1 + ceil_log2(blocks_) : 0);
    gradients_[0] = gradient_;
    return {{forwards_, streams_.most, residuals_.most}, std::move(gradients_), std::move(course_)};
  }

 private:
  double weight(std::int64_t block) const { return drawn_[static_cast<std::size_t>(block + 1)]; }

  void note() {
    if (keeps_course_) course_.push_back({streams_.now, residuals_.now});
  }

  double forward(std::int64_t block, double x) {
    ++forwards_;
    note();
    return std::sin(weight(block) * x);
  }

  double advance(std::int64_t first, std::int64_t end, double x) {
    for (std::int64_t block = first; block < end; ++block) x = forward(block, x);
    return x;
  }

  // Forward with residuals, then backward.
  void record(std::int64_t first, std::int64_t end, double x) {
    if (first == end) {
      if (end == blocks_) gradient_ = x;  // the loss is half of the output's square
      return;
    }
    const Counted residual(x, residuals_);
    record(first + 1, end, forward(first, x));
    note();
    const double slope = gradient_ * std::cos(weight(first) * residual.value());
    gradients_[static_cast<std::size_t>(first + 1)] = slope * residual.value();
    gradient_ = slope * weight(first);
  }

  // How far a scheme advances before it keeps a stream; all of them: it keeps residuals; 0: it keeps nothing.
  std::int64_t advances_by(std::int64_t blocks, std::int64_t streams) const {
    switch (scheme_) {
      case Scheme::none:
        return blocks;
      case Scheme::every:
        return 1;
      case Scheme::sqrt:
        return std::min(blocks, ceil_sqrt(blocks_));
      case Scheme::halving:
        return blocks == 1 ? 1 : blocks / 2;
      case Scheme::left_deep:
        return blocks == 1 ? 1 : 0;
      case Scheme::binomial:
        break;
    }
    if (blocks == 1) return 1;
    if (streams == 1) return 0;
    std::int64_t best = 1, least = INT64_MAX;
    for (std::int64_t by = 1; by < blocks; ++by) {
      const std::int64_t cost = by + fewest_advances(blocks - by, streams - 1) + fewest_advances(by, streams);
      if (cost < least) best = by, least = cost;
    }
    return best;
  }

  // Backward through [first, end) from its kept input; `streams` may live, that one among them (binomial alone asks).
  void reverse(std::int64_t first, std::int64_t end, const Counted& input, std::int64_t streams) {
    const std::int64_t by = advances_by(end - first, streams);
    if (by == end - first) return record(first, end, input.value());
    if (by == 0) {
      for (std::int64_t block = end - 1; block >= first; --block) {
        record(block, block + 1, advance(first, block, input.value()));
      }
      return;
    }
    {
      const Counted middle(advance(first, first + by, input.value()), streams_);
      reverse(first + by, end, middle, streams - 1);
    }
    reverse(first, first + by, input, streams);
  }

  Scheme scheme_;
  std::int64_t blocks_;
  bool keeps_course_;
  std::vector<double> drawn_, gradients_;  // of the input, then of each block
  double gradient_ = 0;                    // that has come so far
  std::int64_t forwards_ = 0;
  std::vector<Held> course_;
  Gauge streams_, residuals_;
};

}  // namespace

void require_toy_blocks(std::int64_t blocks) {
  if (blocks >= 1 && blocks <= kMostToyBlocks) return;
  throw Error(ErrorKind::usage, fmt::format("blocks is {}; a toy stack has 1 to {} of them", blocks, kMostToyBlocks));
}

std::string_view to_string(Scheme scheme) {
  constexpr std::array<std::string_view, kSchemes.size()> kNames{"none",    "every",    "sqrt",
                                                                 "halving", "binomial", "left_deep"};
  return kNames[static_cast<std::size_t>(scheme)];
}

Scheme parse_scheme(std::string_view text) { return find_named(kSchemes, "scheme", text); }

ToyRun run_toy_stack(Scheme scheme, std::int64_t blocks, std::uint64_t seed, ToyCourse course) {
  require_toy_blocks(blocks);
  return Stack(scheme, blocks, seed, course).run();
}

SchemeCost cost_of(Scheme scheme, std::int64_t blocks) {
  require_toy_blocks(blocks);
  const std::int64_t n = blocks, log = ceil_log2(n);
  switch (scheme) {
    case Scheme::none:
      return {n, 1, n};
    case Scheme::every:
      return {2 * n - 1, n, 1};
    case Scheme::sqrt: {
      const std::int64_t k = ceil_sqrt(n), segments = (n + k - 1) / k;
      return {2 * n - (n - (segments - 1) * k), segments, k};
    }
    case Scheme::halving: {
      std::int64_t ones = 0;
      for (std::int64_t j = 1; j < n; ++j) ones += std::popcount(static_cast<std::uint64_t>(j));
      return {n + ones, 1 + log, 1};
    }
    case Scheme::binomial:
      return {n + fewest_advances(n, 1 + log), 1 + log, 1};
    case Scheme::left_deep:
      return {n * (n + 1) / 2, 1, 1};
  }
  return {};
}

}  // namespace syslab::model
