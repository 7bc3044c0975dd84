// What one rank does wrong, and what all ranks then say. Every protection is shown to bite: each case goes through
// where the ranks do the same (FaultFree) and ends with an error that names rank, operation and number where they do
// not.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "comm/host_communicator.hpp"
#include "comm/local/local.hpp"
#include "comm/shm/shm.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"
#include "tests/comm/backends.hpp"
#include "tests/comm/expect_error.hpp"
#include "tests/comm/floats.hpp"

namespace syslab::comm {
namespace {

class Fault : public testing::TestWithParam<Backend> {
 protected:
  static constexpr CommunicatorOptions kOptions{.limit = std::chrono::seconds(2), .check_signatures = true};

  static void expect_all(const std::vector<RankEnd>& ends, std::initializer_list<const char*> parts) {
    for (std::size_t rank = 0; rank < ends.size(); ++rank) expect(ends, rank, parts);
  }

  static void expect(const std::vector<RankEnd>& ends, std::size_t rank, std::initializer_list<const char*> parts) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    EXPECT_EQ(ends[rank].kind, ErrorKind::comm) << ends[rank].error;
    for (const char* part : parts) {
      EXPECT_NE(ends[rank].error.find(part), std::string::npos) << "no '" << part << "' in: " << ends[rank].error;
    }
  }

  // One good all_reduce, then what `wrong` does as rank 1 and `right` as the others.
  template <typename Right, typename Wrong>
  static std::vector<RankEnd> second(Right right, Wrong wrong) {
    return GetParam().run(3, kOptions, [&](Communicator& ranks) {
      Floats buffer(12), part(4);
      ranks.all_reduce(view(buffer), Reduction::sum, {"gradient", "bucket 0"}, {});
      if (ranks.rank() == 1) {
        wrong(ranks, buffer, part);
      } else {
        right(ranks, buffer, part);
      }
      return std::string();
    });
  }

  static void all_reduce(Communicator& ranks, Floats& buffer, Floats&) {
    ranks.all_reduce(view(buffer), Reduction::sum, {"gradient", "bucket 1"}, {});
  }
};

TEST_P(Fault, FreeRanksEndWell) {
  for (const RankEnd& end : second(all_reduce, all_reduce)) EXPECT_TRUE(end.well()) << end.error;
}

TEST_P(Fault, ADifferentCountIsNamedWithBothSides) {
  const auto ends = second(all_reduce, [](Communicator& ranks, Floats& buffer, Floats&) {
    ranks.all_reduce(view(buffer, 11), Reduction::sum, {"gradient", "bucket 1"}, {});
  });
  expect_all(ends, {"rank 0 calls all_reduce #2 (gradient, bucket 1) of 12 fp32", "rank 1 calls", "of 11 fp32"});
}

TEST_P(Fault, ADifferentDtypeIsNamedWithBothSides) {
  const auto ends = second(all_reduce, [](Communicator& ranks, Floats& buffer, Floats&) {
    const TensorView half{buffer.data(), DType::bf16, {12}};
    ranks.all_reduce(half, Reduction::sum, {"gradient", "bucket 1"}, {});
  });
  expect_all(ends, {"rank 0 calls all_reduce #2", "of 12 fp32", "rank 1 calls all_reduce #2", "of 12 bf16"});
}

TEST_P(Fault, ADifferentReductionIsNamedWithBothSides) {
  const auto ends = second(all_reduce, [](Communicator& ranks, Floats& buffer, Floats&) {
    ranks.all_reduce(view(buffer), Reduction::max, {"gradient", "bucket 1"}, {});
  });
  expect_all(ends, {"rank 0 calls", ", sum", "rank 1 calls", ", max"});
}

TEST_P(Fault, ADifferentRootIsNamedWithBothSides) {
  const auto from = [](int root) {
    return [root](Communicator& ranks, Floats& buffer, Floats&) {
      ranks.broadcast(view(buffer), root, {"parameter"}, {});
    };
  };
  expect_all(second(from(0), from(2)), {"broadcast #2 (parameter)", "from rank 0", "rank 1 calls", "from rank 2"});
}

TEST_P(Fault, ADifferentOperationIsNamedWithBothSides) {
  const auto ends =
      second([](Communicator& ranks, Floats& buffer,
                Floats& part) { ranks.reduce_scatter(view(buffer), view(part), Reduction::sum, {"gradient"}, {}); },
             [](Communicator& ranks, Floats& buffer, Floats& part) {
               ranks.all_gather(view(part), view(buffer), {"gradient"}, {});
             });
  expect_all(ends, {"rank 0 calls reduce_scatter #2 (gradient) of 4 fp32", "rank 1 calls all_gather #2"});
}

TEST_P(Fault, ASkippedOperationIsNamedByTheNext) {
  const auto ends = GetParam().run(3, kOptions, [](Communicator& ranks) {
    Floats buffer(8);
    for (int bucket = 0; bucket < 4; ++bucket) {
      if (ranks.rank() == 2 && bucket == 1) continue;
      ranks.all_reduce(view(buffer), Reduction::sum, {"gradient", "bucket " + std::to_string(bucket)}, {});
    }
    return std::string();
  });
  expect_all(ends,
             {"rank 0 calls all_reduce #2 (gradient, bucket 1)", "rank 2 calls all_reduce #2 (gradient, bucket 2)"});
}

TEST_P(Fault, AnOperationCalledTwiceIsNamed) {
  const auto ends = GetParam().run(3, kOptions, [](Communicator& ranks) {
    Floats buffer(8);
    for (int bucket = 0; bucket < 4; ++bucket) {
      for (int times = 0; times < (ranks.rank() == 0 && bucket == 2 ? 2 : 1); ++times) {
        ranks.all_reduce(view(buffer), Reduction::sum, {"gradient", "bucket " + std::to_string(bucket)}, {});
      }
    }
    return std::string();
  });
  expect_all(ends,
             {"rank 0 calls all_reduce #4 (gradient, bucket 2)", "rank 1 calls all_reduce #4 (gradient, bucket 3)"});
}

TEST_P(Fault, TheLastOperationSkippedIsNamedToo) {
  const auto ends = second(all_reduce, [](Communicator&, Floats&, Floats&) {});
  EXPECT_TRUE(ends[1].well()) << ends[1].error;
  for (const std::size_t rank : {0U, 2U}) expect(ends, rank, {"rank 1 has left", "all_reduce #2 (gradient, bucket 1)"});
}

TEST_P(Fault, AnOperationOnNoElementsCountsAsOne) {
  const auto ends = second(all_reduce, [](Communicator& ranks, Floats& buffer, Floats& part) {
    ranks.all_reduce(view(buffer, 0), Reduction::sum, {"gradient", "bucket 1"}, {});
    all_reduce(ranks, buffer, part);
  });
  expect_all(ends, {"all_reduce #2", "all_reduce #3"});
}

TEST_P(Fault, ARankThatHangsIsNamedAtTheLimit) {
  const auto begin = std::chrono::steady_clock::now();
  const auto ends = second(all_reduce, [](Communicator& ranks, Floats& buffer, Floats& part) {
    while (!ranks.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    all_reduce(ranks, buffer, part);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kOptions.limit + std::chrono::seconds(3));
  expect_all(ends, {"rank 1", "all_reduce #2 (gradient, bucket 1)", "2.00 s", "all_reduce #1 (gradient, bucket 0)"});
}

TEST_P(Fault, ARankMissingFromABarrierIsNamedAtTheLimit) {
  const auto ends = GetParam().run(3, kOptions, [](Communicator& ranks) {
    if (ranks.rank() == 2) {
      while (!ranks.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ranks.barrier();
    return std::string();
  });
  expect_all(ends, {"rank 2", "barrier #1"});
}

TEST_P(Fault, ABarrierDoesNotMeetAnExchange) {
  const auto ends = GetParam().run(2, kOptions, [](Communicator& ranks) {
    if (ranks.rank() == 0) ranks.barrier();
    if (ranks.rank() == 1) ranks.exchange("hello");
    return std::string();
  });
  expect_all(ends, {"rank 0 calls barrier #1", "rank 1 calls exchange #1"});
}

TEST_P(Fault, AnExceptionOfOneRankIsToldByAll) {
  const auto ends = second(
      all_reduce, [](Communicator&, Floats&, Floats&) { throw std::runtime_error("no memory for fc1's activations"); });
  EXPECT_EQ(ends[1].error, "no memory for fc1's activations");
  for (const std::size_t rank : {0U, 2U}) expect(ends, rank, {"rank 1", "no memory for fc1's activations"});
}

TEST_P(Fault, AfterAFailureEveryOperationThrowsTheSame) {
  const auto ends = GetParam().run(2, kOptions, [](Communicator& ranks) {
    Floats buffer(8), part(4);
    try {  // who joins later is told that it cannot, and who is still in here may hear of the end here
      ranks.barrier();
    } catch (const Error&) {
    }
    if (ranks.rank() == 0) ranks.abort("the test says so");
    while (!ranks.failed()) {
      try {  // a backend may hear of it only where it waits
        ranks.barrier();
      } catch (const Error&) {
      }
    }
    const std::vector<std::function<void()>> operations = {
        [&] { ranks.all_reduce(view(buffer), Reduction::sum, {}, {}); },
        [&] { ranks.reduce_scatter(view(buffer), view(part), Reduction::sum, {}, {}); },
        [&] { ranks.all_gather(view(part), view(buffer), {}, {}); },
        [&] { ranks.broadcast(view(buffer), 0, {}, {}); },
        [&] { ranks.send(view(buffer), 1 - ranks.rank(), {}, {}); },
        [&] { ranks.receive(view(buffer), 1 - ranks.rank(), {}, {}); },
        [&] { ranks.begin_group(); },
        [&] { ranks.barrier(); },
        [&] { ranks.exchange("x"); },
    };
    for (const auto& operation : operations) {
      expect_error(ErrorKind::comm, {"rank 0 ended the communication: the test says so"}, operation);
    }
    return std::string(testing::Test::HasFailure() ? "failed" : "");
  });
  for (const RankEnd& end : ends) EXPECT_TRUE(end.well() && end.result.empty()) << end.error << end.result;
}

TEST_P(Fault, OnAQueueAFailureIsToldByTheQueueAndByWait) {
  const auto ends = GetParam().run(2, kOptions, [](Communicator& ranks) {
    const auto queue = device::OwnedStream::queue();
    Floats buffer(8);
    const Work work = ranks.all_reduce(view(buffer, 8 - ranks.rank()), Reduction::sum, {"gradient", "bucket 0"}, queue);
    const std::initializer_list<const char*> parts = {"rank 0 calls all_reduce #1", "rank 1 calls all_reduce #1"};
    expect_error(ErrorKind::comm, parts, [&] { ranks.wait(work); });
    expect_error(ErrorKind::comm, parts, [&] { device::synchronize(queue); });
    return std::string(testing::Test::HasFailure() ? "failed" : "");
  });
  for (const RankEnd& end : ends) EXPECT_TRUE(end.well() && end.result.empty()) << end.error << end.result;
}

TEST_P(Fault, AnOperationDroppedBehindFailedWorkIsToldToTheOthers) {
  const auto ends = GetParam().run(3, kOptions, [](Communicator& ranks) {
    const auto queue = device::OwnedStream::queue();
    Floats buffer(8);
    if (ranks.rank() == 1) device::enqueue(queue, [] { throw std::runtime_error("the kernel failed"); });
    const Work work = ranks.all_reduce(view(buffer), Reduction::sum, {"gradient", "bucket 0"}, queue);
    if (ranks.rank() == 1) device::synchronize(queue);
    ranks.wait(work);
    return std::string();
  });
  EXPECT_EQ(ends[1].error, "the kernel failed");
  for (const std::size_t rank : {0U, 2U}) {
    expect(ends, rank, {"rank 1", "all_reduce #1 (gradient, bucket 0)", "the kernel failed"});
  }
}

TEST_P(Fault, AMessageOfAnotherCountIsNamedWithBothSides) {
  const auto ends = GetParam().run(2, kOptions, [](Communicator& ranks) {
    Floats buffer(8);
    if (ranks.rank() == 0) ranks.send(view(buffer), 1, {"control"}, {});
    if (ranks.rank() == 1) ranks.receive(view(buffer, 7), 0, {"control"}, {});
    return std::string();
  });
  expect_all(ends, {"rank 0 calls send #1", "of 8 fp32", "rank 1 calls receive #1", "of 7 fp32"});
}

TEST_P(Fault, AMessageToARankThatLeftFails) {
  const auto ends = GetParam().run(2, kOptions, [](Communicator& ranks) {
    Floats buffer(8);
    if (ranks.rank() == 0) ranks.send(view(buffer), 1, {"control"}, {});
    return std::string();
  });
  expect(ends, 0, {"rank 1", "send #1 (control) of 8 fp32 elements to rank 1"});
}

TEST_P(Fault, AWaitForWorkThatNeverBeginsEndsAtTheLimit) {
  const auto ends = GetParam().run(2, kOptions, [](Communicator& ranks) {
    const auto queue = device::OwnedStream::queue();
    Floats buffer(8);
    device::enqueue(queue, [&ranks] {  // a kernel that does not end by itself
      while (!ranks.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
    ranks.wait(ranks.all_reduce(view(buffer), Reduction::sum, {}, queue));
    return std::string();
  });
  expect_all(ends, {"rank ", "2.00 s", "all_reduce #1 (gradient)"});
}

std::vector<Backend> that_hear() {
  std::vector<Backend> some(backends().begin(), backends().end());
  std::erase_if(some, [](const Backend& backend) { return !backend.hears; });
  return some;
}

INSTANTIATE_TEST_SUITE_P(Backends, Fault, testing::ValuesIn(that_hear()),
                         [](const auto& info) { return info.param.name; });

// Whose fault it is, as each of two ranks tells it; own where it threw what is no failure of the communication.
std::vector<std::string> faults(const std::function<std::vector<std::unique_ptr<Communicator>>()>& make,
                                const std::function<void(Communicator&)>& body) {
  auto ranks = make();
  std::vector<std::string> told(ranks.size(), "none");
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(*ranks[rank]);
      } catch (const RankError& error) {
        told[rank] = to_string(error.fault());
      } catch (const std::exception& error) {
        told[rank] = "own";
        ranks[rank]->abort(error.what());
      }
      ranks[rank].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return told;
}

TEST(Blame, IsTheRanksThatFailedLeftOrCameLate) {
  using Told = std::vector<std::string>;
  const CommunicatorOptions options{.limit = std::chrono::seconds(2)};
  const std::vector<std::function<std::vector<std::unique_ptr<Communicator>>()>> both{
      [&] { return make_local(2, options); }, [&] { return make_shm_for_threads(2, options); }};
  for (const auto& make : both) {
    const auto reduce = [](Communicator& ranks, std::int64_t count) {
      Floats buffer(8);
      ranks.all_reduce(view(buffer, count), Reduction::sum, {}, {});
    };
    EXPECT_EQ(faults(make, [&](Communicator& ranks) { reduce(ranks, 8); }), (Told{"none", "none"}));
    EXPECT_EQ(faults(make, [&](Communicator& ranks) { reduce(ranks, 8 - ranks.rank()); }),
              (Told{"mismatch", "mismatch"}));
    EXPECT_EQ(faults(make,
                     [&](Communicator& ranks) {
                       if (ranks.rank() == 0) reduce(ranks, 8);
                     }),
              (Told{"peer", "none"}));
    EXPECT_EQ(faults(make,
                     [&](Communicator& ranks) {
                       if (ranks.rank() == 1) throw std::runtime_error("no memory");
                       reduce(ranks, 8);
                     }),
              (Told{"peer", "own"}));
    // The one that the other waited for comes at last, and it is too late.
    EXPECT_EQ(faults(make,
                     [&](Communicator& ranks) {
                       while (ranks.rank() == 1 && !ranks.failed()) {
                         std::this_thread::sleep_for(std::chrono::milliseconds(5));
                       }
                       reduce(ranks, 8);
                     }),
              (Told{"late", "awaited"}));
  }
}

// Work that is left in a queue when its communicator goes must not touch it.
TEST(Destruction, WorkStillQueuedFailsAndTouchesNothing) {
  const auto queue = device::OwnedStream::queue();
  Floats buffer(8);
  std::promise<void> gone;
  device::enqueue(queue, [until = gone.get_future().share()] { until.wait(); });
  {
    const auto ranks = make_local(2);
    ranks[0]->all_reduce(view(buffer), Reduction::sum, {}, queue);
    ranks[1]->abort("over");
  }
  gone.set_value();
  expect_error(ErrorKind::comm, {"all_reduce #1", "destroyed"}, [&] { device::synchronize(queue); });
}

// A rank whose operations take as long as the test likes, whatever fails meanwhile.
class Held final : public HostCommunicator {
 public:
  explicit Held(std::shared_future<void> until) : HostCommunicator(0, 2, {}), until_(std::move(until)) {}
  ~Held() override { finish(); }
  std::string_view backend() const override { return "held"; }
  std::promise<void> begun;

 protected:
  void perform(std::span<const Call>) override {
    begun.set_value();
    until_.wait();
  }
  std::vector<std::string> exchange_now(const Call&, std::string_view) override { return {}; }
  void spread(std::string_view) noexcept override {}

 private:
  std::shared_future<void> until_;
};

// After a failure the turns of other streams end at once: one that is under way is waited for all the same.
TEST(Destruction, WaitsForTheWorkUnderWayBesideOneThatFails) {
  const auto first = device::OwnedStream::queue(), second = device::OwnedStream::queue();
  std::promise<void> release;
  auto held = std::make_unique<Held>(release.get_future().share());
  Floats buffer(8);
  held->all_reduce(view(buffer), Reduction::sum, {}, first);
  held->begun.get_future().wait();
  held->all_reduce(view(buffer), Reduction::sum, {}, second);
  held->abort("over");
  EXPECT_THROW(device::synchronize(second), Error);
  std::atomic<bool> gone = false;
  std::thread destroyer([&] {
    held.reset();
    gone = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(gone) << "destroyed under an operation";
  release.set_value();
  destroyer.join();
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace syslab::comm
