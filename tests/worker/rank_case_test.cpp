// The journey of a case of several ranks, on ranks that are threads: all in step, checked before timed, verified.
#include "worker/cases/rank_case.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "tests/worker/three_orders.hpp"
#include "worker/cases/bursts.hpp"
#include "worker/cases/kernel_code.hpp"

namespace syslab::worker {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 3;

struct Left {
  std::vector<Record> records;
  std::string check_failed;

  template <typename Kind>
  std::vector<Kind> all() const {
    std::vector<Kind> found;
    for (const Record& record : records) {
      if (const auto* one = std::get_if<Kind>(&record)) found.push_back(*one);
    }
    return found;
  }
  std::vector<double> series(const std::string& name) const {
    for (const SampleRecord& one : all<SampleRecord>()) {
      if (one.series == name) return one.values;
    }
    return {};
  }
  std::optional<CheckRecord> check(const std::string& name) const {
    for (const CheckRecord& one : all<CheckRecord>()) {
      if (one.name == name) return one;
    }
    return std::nullopt;
  }
};

// What threads need to stay in step, as processes need a communicator.
struct Together {
  std::barrier<> gate{kRanks};
  double told = 0;
  double of_first(int rank, double own) {
    gate.arrive_and_wait();
    if (rank == 0) told = own;
    gate.arrive_and_wait();
    return told;
  }
};

using Change = std::function<void(RankCase& made, int rank)>;

// With `hosts`, one a rank, as task `paired`.
std::vector<Left> run_ranks(const std::string& protocol, const Change& change = {},
                            std::vector<ThreeOrders>* hosts = nullptr) {
  Together together;
  std::vector<Left> left(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      CaseRequest request;
      request.experiment = "test";
      request.seed = 7;
      request.protocol = protocol;
      request.rank = rank;
      request.world_size = kRanks;
      if (hosts) request.task = Task::paired;
      request.burst = 10ms;
      Left& mine = left[static_cast<std::size_t>(rank)];
      CaseContext context(
          request, [&mine](const Record& record) { mine.records.push_back(record); },
          hosts ? &hosts->at(static_cast<std::size_t>(rank)) : nullptr);
      RankCase made;
      made.of_first = [&](double own) { return together.of_first(rank, own); };
      made.barrier = [&] { together.gate.arrive_and_wait(); };
      made.check = [](device::Stream) { return std::vector<StepCheck>{{.name = "sum", .message = "by hand"}}; };
      made.start = [](device::Stream) {
        RankRun run;
        run.series = {{.name = "time", .call = [] { std::this_thread::sleep_for(200us); }},
                      {.name = "pipelined", .calls = 4, .call = [] { std::this_thread::sleep_for(50us); }}};
        return run;
      };
      if (change) change(made, rank);
      try {
        run_rank_case(context, made);
      } catch (const CheckFailed& failed) {
        mine.check_failed = failed.what();
        together.gate.arrive_and_drop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return left;
}

// Hears one kernel for each call between its two words.
class FakeWatch final : public trace::CodeWatch {
 public:
  explicit FakeWatch(const std::atomic<int>& calls) : calls_(calls) {}
  void begin() override { before_ = calls_; }
  trace::CodeOfCall end() override { return {"d1", {{"add", "c0de", calls_ - before_}}, ""}; }

 private:
  const std::atomic<int>& calls_;
  int before_ = 0;
};

// One process has one listener, so that one rank alone is heard here.
TEST(RankCase, InTaskCodeTellsTheKernelsOfOneCallAndNothingElse) {
  for (const bool heard : {true, false}) {
    std::atomic<int> calls{0}, of_others{0}, refreshed{0};
    std::vector<Left> left;
    {
      CaseRequest request;
      request.experiment = "test";
      request.protocol = "quick";
      request.task = Task::code;
      request.world_size = 2;
      listen_for_code_by(heard ? std::make_unique<FakeWatch>(calls) : nullptr);
      Left& mine = left.emplace_back();
      CaseContext context(request, [&mine](const Record& record) { mine.records.push_back(record); });
      RankCase made;
      made.of_first = [](double own) { return own; };
      made.barrier = [&] { ++calls; };  // kernels of its own, which are not the call's
      made.check = [&](device::Stream) { return ++of_others, std::vector<StepCheck>{}; };
      made.start = [&](device::Stream) {
        RankRun run;
        run.series = {{.name = "time",
                       .refresh =
                           [&] {
                             ++refreshed;
                             ++calls;
                           },
                       .call = [&] { ++calls; }},
                      {.name = "pipelined", .call = [&] { ++of_others; }}};
        return run;
      };
      run_rank_case(context, made);
      listen_for_code_by(nullptr);
    }
    EXPECT_EQ(of_others, 0) << "neither checked nor timed again";
    EXPECT_EQ(refreshed, 2);
    EXPECT_EQ(calls, 2 + 2 + 3) << "calls, refreshes and barriers, the last behind all";
    ASSERT_EQ(left[0].records.size(), 1U);
    const Json code = Json::parse(left[0].all<FactRecord>().at(0).json).at("code");
    if (heard) {
      EXPECT_EQ(code.at("digest"), "d1");
      EXPECT_EQ(code.at("kernels"), Json::parse(R"([{"name": "add", "code": "c0de", "launches": 1}])"));
    } else {
      EXPECT_EQ(code, (Json{{"why", "nobody listens"}}));
    }
  }
}

TEST(RankCase, TakesAsManySamplesOnEveryRankHoweverSlowTheyAre) {
  const auto left = run_ranks("quick", [](RankCase& made, int rank) {
    made.start = [rank](device::Stream) {
      RankRun run;
      run.series = {{.name = "time", .call = [rank] { std::this_thread::sleep_for(rank * 2ms); }},
                    {.name = "pipelined", .calls = 4, .call = [] { std::this_thread::sleep_for(50us); }}};
      return run;
    };
  });
  for (const char* name : {"time", "pipelined"}) {
    for (const Left& one : left) {
      EXPECT_EQ(one.series(name).size(), left[0].series(name).size());
      EXPECT_GE(one.series(name).size(), 6U);
    }
  }
  for (const double seconds : left[2].series("time")) EXPECT_GE(seconds, 4e-3);
  for (const double seconds : left[2].series("pipelined")) EXPECT_GE(seconds, 50e-6) << "of a call";
  EXPECT_GT(left[2].series("time").size(), 0U);
  EXPECT_EQ(left[1].check("reference:sum")->outcome, syslab::Outcome::passed);
}

TEST(RankCase, CountsCallsByAnEstimateOnAllRanksAlikeWhereTheProtocolAsksForIt) {
  const auto left = run_ranks("do_bench", [](RankCase& made, int rank) {
    made.start = [rank](device::Stream) {
      RankRun run;
      run.series = {{.name = "time", .call = [rank] { std::this_thread::sleep_for((4 - rank) * 2ms); }}};
      return run;
    };
  });
  for (const Left& one : left) {
    // 25 and 100 ms over calls of 8 ms and a little: 3 and 12 at most, and fewer on a busy machine.
    EXPECT_EQ(one.series("time").size(), left[0].series("time").size());
    EXPECT_EQ(one.series("warmup").size(), left[0].series("warmup").size());
  }
  EXPECT_GE(left[0].series("time").size(), 2U);
  EXPECT_LE(left[0].series("time").size(), 12U);
  EXPECT_GE(left[0].series("warmup").size(), 1U + 5U + 1U);
  EXPECT_LE(left[0].series("warmup").size(), 1U + 5U + 3U);
}

TEST(RankCase, VerifiesTheSameSamplesOnAllRanksAndFreshContentComesBeforeEach) {
  struct Seen {
    int refreshed = 0, called = 0;
    std::vector<int> verified;
  };
  std::vector<Seen> seen(kRanks);
  const auto left = run_ranks("quick", [&](RankCase& made, int rank) {
    Seen& mine = seen[static_cast<std::size_t>(rank)];
    made.start = [&mine](device::Stream) {
      RankRun run;
      run.series = {{.name = "time",
                     .refresh = [&mine] { ++mine.refreshed; },
                     .call =
                         [&mine] {
                           ++mine.called;
                           EXPECT_EQ(mine.called, mine.refreshed);
                           std::this_thread::sleep_for(100us);
                         },
                     .verify =
                         [&mine] {
                           mine.verified.push_back(mine.called);
                           return StepCheck{.name = "sum", .error = 0, .tolerance = 0};
                         }}};
      return run;
    };
  });
  EXPECT_FALSE(seen[0].verified.empty());
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    EXPECT_EQ(seen[at].verified, seen[0].verified);
    EXPECT_EQ(seen[at].verified.back(), seen[at].called) << "the last is compared in any case";
    EXPECT_EQ(left[at].check("samples:time")->cases_run, static_cast<std::int64_t>(seen[0].verified.size()));
  }
}

TEST(RankCase, ARankThatIsWrongBeforeTimingTellsNoTimes) {
  const auto left = run_ranks("quick", [](RankCase& made, int) {
    made.check = [](device::Stream) {
      return std::vector<StepCheck>{{.name = "sum", .error = 1, .tolerance = 0.5, .message = "by hand"}};
    };
  });
  for (const Left& one : left) {
    EXPECT_NE(one.check_failed.find("sum: 1 off"), std::string::npos) << one.check_failed;
    EXPECT_EQ(one.check("reference:sum")->outcome, syslab::Outcome::falsified);
    EXPECT_TRUE(one.all<SampleRecord>().empty());
  }
}

TEST(RankCase, AResultThatIsWrongInATimedSampleTellsNoTimes) {
  const auto left = run_ranks("quick", [](RankCase& made, int) {
    made.start = [](device::Stream) {
      RankRun run;
      run.series = {{.name = "time",
                     .call = [] { std::this_thread::sleep_for(100us); },
                     .verify = [] { return StepCheck{.name = "sum", .error = NAN, .message = "no number"}; }}};
      return run;
    };
  });
  for (const Left& one : left) {
    EXPECT_EQ(one.check("samples:time")->outcome, syslab::Outcome::falsified);
    EXPECT_NE(one.check_failed.find("no number"), std::string::npos) << one.check_failed;
    EXPECT_TRUE(one.all<SampleRecord>().empty());
  }
}

// A result of two numbers that refresh() fills with NaN, of which the calls from `lazy` on write one.
RankSeries writes_one_from(int lazy) {
  struct Result {
    std::array<float, 2> values{};
    int calls = 0;
  };
  const auto result = std::make_shared<Result>();
  return {.name = "time",
          .refresh = [result] { result->values.fill(NAN); },
          .call =
              [result, lazy] {
                std::this_thread::sleep_for(100us);
                result->values[0] = 1;
                if (++result->calls < lazy) result->values[1] = 1;
              },
          .results =
              [result] {
                return std::vector<device::Elements>{{result->values.data(), DType::f32, 2}};
              }};
}

TEST(RankCase, LooksThroughTheResultsOfEverySampleForNan) {
  for (const int lazy : {1 << 20, 9}) {
    const auto left = run_ranks("quick", [lazy](RankCase& made, int) {
      made.start = [lazy](device::Stream) {
        RankRun run;
        run.series = {writes_one_from(lazy)};
        run.series[0].verify = [] { return StepCheck{.name = "sum", .message = "by hand"}; };
        return run;
      };
    });
    for (const Left& one : left) {
      const auto check = one.check("samples:time");
      ASSERT_TRUE(check);
      EXPECT_EQ(check->outcome, lazy == 9 ? syslab::Outcome::falsified : syslab::Outcome::passed) << check->message;
      EXPECT_EQ(one.series("time").empty(), lazy == 9);
      if (lazy != 9) {
        EXPECT_NE(check->message.find(fmt::format("; {} were looked through for NaN", one.series("time").size())),
                  std::string::npos)
            << check->message;
      }
    }
  }
}

TEST(RankCase, VerifiesTheLastSampleWhateverWasDrawn) {
  struct Seen {
    int calls = 0, verified = 0;
  };
  for (const bool in_bursts : {false, true}) {
    std::vector<ThreeOrders> hosts(kRanks);
    std::vector<Seen> seen(kRanks);
    const auto left = run_ranks(
        "quick",
        [&](RankCase& made, int rank) {
          Seen& mine = seen[static_cast<std::size_t>(rank)];
          made.start = [&mine](device::Stream) {
            RankRun run;
            run.series = {{.name = "time",
                           .call =
                               [&mine] {
                                 ++mine.calls;
                                 std::this_thread::sleep_for(100us);
                               },
                           .verify =
                               [&mine] {
                                 mine.verified = mine.calls;
                                 return StepCheck{.name = "sum", .message = "by hand"};
                               }}};
            return run;
          };
        },
        in_bursts ? &hosts : nullptr);
    for (const Seen& one : seen) EXPECT_EQ(one.verified, one.calls) << in_bursts;
  }
}

TEST(RankCase, TakesBurstsOfAsManyCallsOnAllRanksWhenTheHostOrdersThem) {
  std::vector<ThreeOrders> hosts(kRanks);
  std::vector<int> called(kRanks), verified(kRanks);
  const auto left = run_ranks(
      "quick",
      [&](RankCase& made, int rank) {
        const auto at = static_cast<std::size_t>(rank);
        made.start = [&, at](device::Stream) {
          RankRun run;
          run.series = {{.name = "time",
                         .call =
                             [&, at] {
                               ++called[at];
                               std::this_thread::sleep_for((at + 1) * 2ms);
                             },
                         .verify =
                             [&, at] {
                               ++verified[at];
                               return StepCheck{.name = "sum", .message = "by hand"};
                             }},
                        {.name = "pipelined", .call = [] { FAIL() << "only the first series is compared"; }}};
          run.tell = [](CaseContext&, const auto&) { FAIL() << "a side tells its times alone"; };
          return run;
        };
      },
      &hosts);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    ASSERT_EQ(hosts[at].told.size(), 1U);
    EXPECT_EQ(hosts[at].told[0].calls_per_burst, hosts[0].told[0].calls_per_burst);
    EXPECT_EQ(hosts[at].bursts.size(), 3U);
    for (const double seconds : hosts[at].bursts) EXPECT_GE(seconds, 2e-3 * (rank + 1));
    EXPECT_EQ(left[at].series("time"), hosts[at].bursts);
    EXPECT_EQ(called[at], called[0]);
    EXPECT_GE(verified[at], 1);
    EXPECT_EQ(verified[at], verified[0]);
    EXPECT_EQ(left[at].check("samples:time")->outcome, syslab::Outcome::passed);
  }
  // Of 10 ms by rank 0's own calls of 2 ms and more.
  EXPECT_GE(hosts[0].told[0].calls_per_burst, 1);
  EXPECT_LE(hosts[0].told[0].calls_per_burst, 5);
}

TEST(RankCase, RanksThatAreWrongAreNeverReadyForBursts) {
  std::vector<ThreeOrders> hosts(kRanks);
  const auto left = run_ranks(
      "quick",
      [](RankCase& made, int) {
        made.check = [](device::Stream) { return std::vector<StepCheck>{{.name = "sum", .error = 1}}; };
      },
      &hosts);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    EXPECT_TRUE(hosts[at].told.empty());
    EXPECT_EQ(left[at].check("reference:sum")->outcome, syslab::Outcome::falsified);
  }
}

TEST(RankCase, RefusesToBeCaptured) {
  EXPECT_THROW(
      {
        CaseRequest request;
        request.protocol = "graph";
        CaseContext context(request, [](const Record&) {});
        run_rank_case(context, {});
      },
      Unsupported);
}

TEST(LastOf, LeavesOutTheStepsThatWarmedUp) {
  const std::vector<int> steps{1, 2, 3, 4};
  const std::span<const int> last = last_of(steps, 3);
  EXPECT_EQ(std::vector(last.begin(), last.end()), (std::vector{2, 3, 4}));
  EXPECT_TRUE(last_of(steps, 5).empty()) << "not all samples have a step";
}

}  // namespace
}  // namespace syslab::worker
