#include "device/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace syslab::device {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnceWithAThreadInRange) {
  std::vector<std::atomic<int>> visits(1000);
  std::atomic<int> bad_threads{0};
  parallel_for(1000, [&](std::int64_t index, int thread) {
    visits[static_cast<std::size_t>(index)]++;
    if (thread < 0 || thread >= thread_count()) bad_threads++;
  });
  for (const auto& count : visits) EXPECT_EQ(count, 1);
  EXPECT_EQ(bad_threads, 0);
}

TEST(ParallelFor, OfNothingCallsNothing) {
  parallel_for(0, [](std::int64_t, int) { FAIL(); });
}

TEST(ParallelFor, CarriesAnExceptionOut) {
  for (const int threads : {1, 3}) {
    const int before = thread_count();
    set_thread_count(threads);
    try {
      parallel_for(100, [](std::int64_t index, int) {
        if (index == 37) throw std::runtime_error("index 37");
      });
      FAIL() << "the exception was lost";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "index 37");
    }
    set_thread_count(before);
  }
}

TEST(ParallelFor, InsideAnotherRunsOnTheCallingThread) {
  std::atomic<int> sum{0};
  parallel_for(4, [&](std::int64_t, int) {
    parallel_for(10, [&](std::int64_t index, int thread) {
      EXPECT_EQ(thread, 0);
      sum += static_cast<int>(index);
    });
  });
  EXPECT_EQ(sum, 4 * 45);
}

TEST(ParallelFor, ToldToStayOnOneThreadKeepsWhatItCallsThereToo) {
  const int before = thread_count();
  set_thread_count(3);
  const auto caller = std::this_thread::get_id();
  EXPECT_FALSE(inside_parallel_for());
  std::atomic<int> visits{0};
  parallel_for(
      8,
      [&](std::int64_t, int) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        EXPECT_TRUE(inside_parallel_for()) << "a matrix product in here would wake its own threads";
        parallel_for(8, [&](std::int64_t, int) {
          EXPECT_EQ(std::this_thread::get_id(), caller);
          visits++;
        });
      },
      1);
  EXPECT_EQ(visits, 64);
  EXPECT_FALSE(inside_parallel_for());
  // One index is not a request to stay: what it calls may use the threads that the loop leaves idle.
  parallel_for(1, [](std::int64_t, int) { EXPECT_FALSE(inside_parallel_for()); });
  set_thread_count(before);
}

TEST(ParallelFor, ForgetsThatItWasToldToStayWhenTheBodyThrows) {
  const auto body = [](std::int64_t, int) { throw std::runtime_error("thrown"); };
  EXPECT_THROW(parallel_for(2, body, 1), std::runtime_error);
  EXPECT_FALSE(inside_parallel_for());
}

TEST(ParallelFor, UsesAsManyThreadsAsItIsTold) {
  const int before = thread_count();
  set_thread_count(3);
#ifdef _OPENMP
  EXPECT_EQ(thread_count(), 3);
#else
  EXPECT_EQ(thread_count(), 1);
#endif
  set_thread_count(before);
  EXPECT_EQ(thread_count(), before);
}

}  // namespace
}  // namespace syslab::device
