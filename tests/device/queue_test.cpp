// Streams of the CPU with a thread of their own: order, events across them, and what a failure in one does.
#include "device/queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "device/cuda/cublas.hpp"
#include "device/event.hpp"
#include "device/fill_random.hpp"
#include "device/memory.hpp"
#include "device/pattern.hpp"
#include "device/stream.hpp"

namespace syslab::device {
namespace {

// Holds a queue until the test lets go: order is shown without clocks.
class Hold {
 public:
  explicit Hold(Stream stream) {
    enqueue(stream, [until = released_.get_future().share()] { until.wait(); });
  }
  void release() { released_.set_value(); }

 private:
  std::promise<void> released_;
};

TEST(Queue, WorkRunsInItsOrderInAnotherThread) {
  const OwnedStream queue = OwnedStream::queue();
  std::vector<int> order;
  std::thread::id where;
  for (int i = 0; i < 100; ++i) enqueue(queue, [&order, i] { order.push_back(i); });
  enqueue(queue, [&where] { where = std::this_thread::get_id(); });
  synchronize(queue);
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(Queue, ThePlainStreamRunsWorkNow) {
  bool ran = false;
  enqueue({}, [&ran] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_THROW(enqueue({}, [] { throw std::runtime_error("here"); }), std::runtime_error);
}

TEST(Queue, IsTheCpusAndIdleWhenItsWorkIsDone) {
  const OwnedStream queue = OwnedStream::queue();
  EXPECT_NE(queue.view().handle, nullptr);
  EXPECT_EQ(place_of(queue), (Place{}));
  EXPECT_FALSE(is_capturing(queue));
  EXPECT_TRUE(is_idle(queue));
  Hold hold(queue);
  EXPECT_FALSE(is_idle(queue));
  hold.release();
  synchronize(queue);
  EXPECT_TRUE(is_idle(queue));
}

TEST(Queue, SynchronizingWithTheCpuLeavesNoQueueOut) {
  const OwnedStream one = OwnedStream::queue(), other = OwnedStream::queue();
  std::atomic<int> done = 0;
  for (const Stream stream : {one.view(), other.view()}) {
    enqueue(stream, [&done] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++done;
    });
  }
  synchronize(Place{});
  EXPECT_EQ(done, 2);
}

TEST(Queue, AnEventOfOneIsWaitedForByTheOther) {
  const OwnedStream first = OwnedStream::queue(), second = OwnedStream::queue();
  Hold hold(first);
  int value = 0, seen = -1;
  Event ready({});
  EXPECT_TRUE(ready.done());
  enqueue(first, [&value] { value = 7; });
  ready.record(first);
  ready.before(second);
  enqueue(second, [&] { seen = value; });
  EXPECT_FALSE(ready.done());
  EXPECT_FALSE(is_idle(second));
  hold.release();
  synchronize(second);
  EXPECT_EQ(seen, 7);
  EXPECT_TRUE(ready.done());
}

TEST(Queue, AWaitHoldsTheMarkThatItWasQueuedFor) {
  const OwnedStream first = OwnedStream::queue(), second = OwnedStream::queue();
  Event event({});
  event.record(first);
  Hold hold(first);
  event.before(second);
  event.record(first);  // behind what is held: the wait above is not for this one
  synchronize(second);
  EXPECT_FALSE(event.done());
  hold.release();
  event.synchronize();
  EXPECT_TRUE(event.done());
}

TEST(Queue, ThePlainStreamWaitsForAnEventOnTheHost) {
  const OwnedStream queue = OwnedStream::queue();
  int value = 0;
  enqueue(queue, [&value] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    value = 3;
  });
  Event event({});
  event.record(queue);
  event.before({});
  EXPECT_EQ(value, 3);
}

TEST(Queue, EventsTellTheTimeBetweenThem) {
  const OwnedStream queue = OwnedStream::queue();
  Event begin({}, Timing::yes), end({}, Timing::yes);
  begin.record(queue);
  Hold hold(queue);
  end.record(queue);
  begin.synchronize();
  EXPECT_THROW(elapsed(begin, end), Error) << "the end has not come";
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  hold.release();
  synchronize(queue);
  EXPECT_GE(elapsed(begin, end), std::chrono::milliseconds(2));
  end.record({});  // across streams, and back on the plain one
  EXPECT_GE(elapsed(begin, end), std::chrono::milliseconds(2));
}

TEST(Queue, AFailureIsToldOnceAndDropsWhatIsBehindIt) {
  const OwnedStream queue = OwnedStream::queue(), other = OwnedStream::queue();
  bool behind = false, after = false, elsewhere = false;
  Hold hold(queue);
  enqueue(queue, [] { throw std::runtime_error("the third layer"); });
  enqueue(queue, [&behind] { behind = true; });
  Event event({});
  event.record(queue);
  event.before(other);
  enqueue(other, [&elsewhere] { elsewhere = true; });
  hold.release();
  synchronize(other);  // the event was set: nobody hangs
  EXPECT_TRUE(elsewhere);
  EXPECT_TRUE(event.done());
  try {
    synchronize(queue);
    ADD_FAILURE() << "the failure was swallowed";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the third layer");
  }
  EXPECT_FALSE(behind);
  enqueue(queue, [&after] { after = true; });
  EXPECT_NO_THROW(synchronize(Place{}));
  EXPECT_TRUE(after);
}

TEST(Queue, SynchronizingWithTheCpuTellsAFailureToo) {
  const OwnedStream queue = OwnedStream::queue();
  enqueue(queue, [] { throw std::runtime_error("lost"); });
  EXPECT_THROW(synchronize(Place{}), std::runtime_error);
  EXPECT_THROW(synchronize(queue), std::runtime_error) << "taken from its owner";
  EXPECT_NO_THROW(synchronize(Place{}));
}

TEST(Queue, ItsOwnerWaitsForItsWorkAlsoWhileAnotherDoes) {
  auto queue = std::make_unique<OwnedStream>(OwnedStream::queue());
  Hold hold(*queue);
  std::atomic<bool> gone = false;
  std::thread other([] { synchronize(Place{}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it has come to wait
  std::thread owner([&] {
    queue.reset();
    gone = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(gone) << "destroyed under its work";
  hold.release();
  owner.join();
  other.join();
}

TEST(Queue, AwaitingItTakesNoFailure) {
  const OwnedStream queue = OwnedStream::queue();
  bool inside = false;
  enqueue(queue, [&] {
    await_queue(queue);  // would wait for itself
    inside = true;
    throw std::runtime_error("the third layer");
  });
  await_queue(queue);
  await_queue({});
  EXPECT_TRUE(inside);
  EXPECT_EQ(failure_of(queue), "the third layer");
  EXPECT_THROW(synchronize(queue), std::runtime_error);
  EXPECT_EQ(failure_of(queue), "");
}

TEST(Queue, DroppedWorkGivesBackWhatItHeldAtOnce) {
  const OwnedStream queue = OwnedStream::queue();
  enqueue(queue, [] { throw std::runtime_error("first"); });
  auto held = std::make_shared<int>(1);
  enqueue(queue, [held] { ADD_FAILURE() << "dropped work ran"; });
  EXPECT_THROW(synchronize(queue), std::runtime_error);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Queue, ItsOwnerWaitsForItsWork) {
  std::atomic<bool> done = false;
  {
    const OwnedStream queue = OwnedStream::queue();
    enqueue(queue, [&done] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      done = true;
    });
  }
  EXPECT_TRUE(done);
}

TEST(Queue, WorkThatWaitsForItsOwnStreamIsToldSo) {
  const OwnedStream queue = OwnedStream::queue();
  enqueue(queue, [stream = queue.view()] { synchronize(stream); });
  EXPECT_THROW(synchronize(queue), Error);
}

// What a destroyed stream was may be another's by now: it is told, whatever is asked of it.
TEST(Queue, WhoseOwnerIsGoneIsToldSoAndNoOtherIsTakenForIt) {
  Stream gone;
  Event before({}), event({});
  {
    const OwnedStream queue = OwnedStream::queue();
    gone = queue;
    before.record(queue);
  }
  const OwnedStream next = OwnedStream::queue();
  EXPECT_NE(next.view().handle, gone.handle);
  EXPECT_NO_THROW(before.before(next)) << "a mark outlives its queue";
  before.record(next);
  const std::vector<std::function<void()>> uses = {
      [&] { enqueue(gone, [] { ADD_FAILURE() << "ran on a queue that is gone"; }); },
      [&] { synchronize(gone); },
      [&] { static_cast<void>(is_idle(gone)); },
      [&] { static_cast<void>(failure_of(gone)); },
      [&] { event.record(gone); },
      [&] { before.before(gone); },
  };
  for (const auto& use : uses) {
    try {
      use();
      ADD_FAILURE() << "used a queue that is gone";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
      EXPECT_NE(std::string(error.what()).find("after its owner has gone"), std::string::npos) << error.what();
    }
  }
  synchronize(next);
}

TEST(QueueDeathTest, WhoseOwnerIsGoneEndsTheProcessOfADestructorThatAwaitsIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto queue = std::make_unique<OwnedStream>(OwnedStream::queue());
        const AwaitsQueues awaits({}, *queue);
        queue.reset();
      },
      "after its owner has gone");
}

// Its work may ask for its own stream while the owner's end waits for it: what a failure drops tells why.
TEST(Queue, KnowsItsOwnStreamToItsEnd) {
  std::string told;
  std::promise<void> release;
  std::thread later;
  {
    const OwnedStream queue = OwnedStream::queue();
    enqueue(queue, [until = release.get_future().share()] { until.wait(); });
    enqueue(queue, [] { throw std::runtime_error("the third layer"); });
    std::shared_ptr<int> dropped(new int, [&told, stream = queue.view()](const int* number) {
      delete number;
      told = failure_of(stream);
    });
    enqueue(queue, [dropped = std::move(dropped)] {});
    later = std::thread([&release] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the owner has come to wait
      release.set_value();
    });
  }
  later.join();
  EXPECT_EQ(told, "the third layer");
}

TEST(Queue, MemoryStaysForItsWorkWhateverIsThrown) {
  const OwnedStream queue = OwnedStream::queue();
  std::atomic<bool> stands = false, stood = false;
  struct Memory {
    explicit Memory(std::atomic<bool>& on) : stands(on) { stands = true; }
    ~Memory() { stands = false; }
    std::atomic<bool>& stands;
  };
  const auto leave = [&] {
    const Memory memory(stands);
    AwaitsQueues first(queue);
    const AwaitsQueues awaits(std::move(first));
    enqueue(queue, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      stood = stands.load();
    });
    throw std::runtime_error("elsewhere");
  };
  EXPECT_THROW(leave(), std::runtime_error);
  EXPECT_TRUE(stood);
}

TEST(Queue, CopiesAndFillsGoInItsOrder) {
  const OwnedStream queue = OwnedStream::queue();
  Hold hold(queue);
  std::vector<unsigned char> from(8, 1), to(8, 2);
  fill_bytes(from.data(), 9, 8, queue);
  copy(to.data(), from.data(), 8, queue);
  EXPECT_EQ(to[7], 2);
  hold.release();
  synchronize(queue);
  EXPECT_EQ(to, std::vector<unsigned char>(8, 9));
}

TEST(Queue, IsRefusedByWhatRunsAtOnce) {
  const OwnedStream queue = OwnedStream::queue();
  std::vector<float> data(4);
  const Gemm product{.m = 2,
                     .n = 2,
                     .k = 1,
                     .a = {data.data(), DType::f32, 1, 0},
                     .b = {data.data(), DType::f32, 2, 0},
                     .c = {data.data(), DType::f32, 2, 0}};
  const std::vector<std::function<void()>> works = {
      [&] {
        fill_random({data.data(), DType::f32, {4}}, RandomStream(1), Distribution::normal, 1, 0, queue);
      },
      [&] { fill_pattern(data.data(), {}, 4, 0, 4, queue); },
      [&] { static_cast<void>(count_differences(data.data(), {}, 4, 0, 4, queue)); },
      [&] { static_cast<void>(count_nans(data.data(), DType::f32, 4, queue)); },
      [&] { gemm(product, queue); },
  };
  for (const auto& work : works) {
    try {
      work();
      ADD_FAILURE() << "ran out of the queue's order";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find("inside enqueue()"), std::string::npos) << error.what();
    }
    EXPECT_NO_THROW(enqueue(queue, [] {}));
  }
}

TEST(Queue, ManyQueuesPassAValueRound) {
  constexpr int kQueues = 5, kRounds = 40;
  std::vector<OwnedStream> queues;
  for (int i = 0; i < kQueues; ++i) queues.push_back(OwnedStream::queue());
  int value = 0;  // guarded by the events alone
  for (int step = 0; step < kQueues * kRounds; ++step) {
    const Stream here = queues[static_cast<std::size_t>(step % kQueues)];
    enqueue(here, [&value, step] {
      EXPECT_EQ(value, step);
      ++value;
    });
    Event event({});
    event.record(here);
    event.before(queues[static_cast<std::size_t>((step + 1) % kQueues)]);
  }
  synchronize(Place{});
  EXPECT_EQ(value, kQueues * kRounds);
}

}  // namespace
}  // namespace syslab::device
