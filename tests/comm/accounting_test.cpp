// Bytes as counted against bytes as the formula has them.
#include "comm/accounting.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "comm/local/local.hpp"
#include "tests/comm/expect_error.hpp"
#include "tests/comm/floats.hpp"
#include "tests/comm/record.hpp"

namespace syslab::comm {
namespace {

// Every operation once, on sizes that no number of ranks divides.
void every_operation(Communicator& ranks) {
  const auto n = static_cast<std::size_t>(ranks.size());
  Floats odd(17), part(5), all(5 * n), message(3);
  ranks.all_reduce(view(odd), Reduction::sum, {"gradient", "bucket 0"}, {});
  ranks.all_reduce(view(odd), Reduction::max, {"a kind of blanks"}, {});
  ranks.reduce_scatter(view(all), view(part), Reduction::sum, {}, {});
  ranks.all_gather(view(part), view(all), {"parameter"}, {});
  ranks.broadcast(view(odd), ranks.size() - 1, {""}, {});
  if (ranks.rank() == 0 && n > 1) ranks.send(view(message), 1, {"control"}, {});
  if (ranks.rank() == 1) ranks.receive(view(message), 0, {"control"}, {});
}

TEST(Accounting, EveryByteOfEveryOperationIsTheFormulas) {
  for (int n = 1; n <= 4; ++n) {
    run_local(n, {.limit = std::chrono::seconds(10)}, [](Communicator& ranks) {
      every_operation(ranks);
      check_accounting(ranks);
      check_accounting(ranks);  // what it says itself is no part of it
    });
  }
}

TEST(Accounting, ABackendThatMovesNothingIsHeldAgainstNoFormula) {
  RecordCommunicator ranks(0, 1024);
  every_operation(ranks);
  check_accounting(ranks);
}

// A peer whose counters are this rank's, but for what `differs` writes.
class Peer final : public HostCommunicator {
 public:
  Peer() : HostCommunicator(0, 2, {}) {}
  ~Peer() override { finish(); }
  std::string_view backend() const override { return "peer"; }

  std::uint64_t moved_here = 0;
  std::string replace, by;

 protected:
  void perform(std::span<const Call> calls) override { counted().add_moved(calls[0].signature, moved_here); }
  std::vector<std::string> exchange_now(const Call&, std::string_view text) override {
    std::string other(text);
    const std::size_t at = other.find(replace);
    if (!replace.empty() && at != std::string::npos) other.replace(at, replace.size(), by);
    return {std::string(text), other};
  }
  void spread(std::string_view) noexcept override {}
};

TEST(Accounting, ALostByteIsToldWithBothNumbers) {
  Peer ranks;
  Floats buffer(4);
  ranks.moved_here = 16;  // 2 · 1/2 · 16 bytes
  ranks.all_reduce(view(buffer), Reduction::sum, {"gradient"}, {});
  check_accounting(ranks);
  ranks.moved_here = 15;
  ranks.all_reduce(view(buffer), Reduction::sum, {"gradient"}, {});
  expect_error(ErrorKind::check, {"all_reduce (gradient)", "moved 62 bytes", "formula says 64"},
               [&] { check_accounting(ranks); });
}

TEST(Accounting, ARankThatCountsOtherwiseIsTold) {
  Peer ranks;
  Floats buffer(4);
  ranks.broadcast(view(buffer), 0, {"parameter"}, {});
  check_accounting(ranks);
  ranks.replace = " 1 16 0 parameter";
  ranks.by = " 1 12 0 parameter";
  expect_error(ErrorKind::check, {"broadcast (parameter)", "rank 0 counts 1 calls of 16", "rank 1 1 calls of 12"},
               [&] { check_accounting(ranks); });
}

}  // namespace
}  // namespace syslab::comm
