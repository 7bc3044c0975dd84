// What every backend has from its base: checks of the arguments, numbers, counters, the recorder. Shown on `record`,
// which moves nothing.
#include "comm/communicator.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <vector>

#include "device/event.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"
#include "tests/comm/expect_error.hpp"
#include "tests/comm/floats.hpp"
#include "tests/comm/record.hpp"

namespace syslab::comm {
namespace {

TEST(Communicator, RefusesARankThatCannotBe) {
  expect_error(ErrorKind::usage, {"rank 2 of 2"}, [] { RecordCommunicator(2, 2); });
  expect_error(ErrorKind::usage, {"rank -1"}, [] { RecordCommunicator(-1, 2); });
  expect_error(ErrorKind::usage, {"rank 0 of 0"}, [] { RecordCommunicator(0, 0); });
}

TEST(Communicator, RefusesWhatNoRankCouldDo) {
  RecordCommunicator ranks(1, 3);
  Floats all(12), part(4);
  const auto refuses = [](std::initializer_list<const char*> parts, auto call) {
    expect_error(ErrorKind::usage, parts, call);
  };
  refuses({"all_reduce", "not contiguous"}, [&] {
    ranks.all_reduce({all.data(), DType::f32, {3, 2}, {4, 1}}, Reduction::sum, {}, {});
  });
  refuses({"all_reduce", "no memory"}, [&] { ranks.all_reduce({nullptr, DType::f32, {3}}, Reduction::sum, {}, {}); });
  refuses({"broadcast", "no rank 3 among 3"}, [&] { ranks.broadcast(view(all), 3, {}, {}); });
  refuses({"send", "no rank -1"}, [&] { ranks.send(view(all), -1, {}, {}); });
  refuses({"receive", "own counterpart"}, [&] { ranks.receive(view(all), 1, {}, {}); });
  refuses({"reduce_scatter", "part of 4", "whole of 11", "3 parts"},
          [&] { ranks.reduce_scatter(view(all, 11), view(part), Reduction::sum, {}, {}); });
  refuses({"all_gather", "same dtype"}, [&] {
    ranks.all_gather({part.data(), DType::f64, {2}}, view(all, 6), {}, {});
  });
  refuses({"all_gather", "overlaps", "piece 1"}, [&] { ranks.all_gather(view(all, 4), view(all), {}, {}); });
  refuses({"all_reduce", "a GPU"}, [&] {
    ranks.all_reduce(view(all), Reduction::sum, {}, {device::Kind::cuda, nullptr});
  });
  refuses({"wait", "queued 0"}, [&] { ranks.wait({1}); });
  EXPECT_TRUE(ranks.log().empty());
  EXPECT_EQ(ranks.counters().total().calls, 0U) << "what was refused is not counted";
  // What only looks like it: one row of a strided view, and a part that is its own piece.
  ranks.all_reduce({all.data(), DType::f32, {1, 3}, {100, 1}}, Reduction::sum, {}, {});
  ranks.all_gather({all.data() + 4, DType::f32, {4}}, view(all), {}, {});
  EXPECT_EQ(ranks.log().size(), 2U);
}

TEST(Communicator, AGroupHoldsMessagesOfOneStream) {
  RecordCommunicator ranks(0, 3);
  const auto queue = device::OwnedStream::queue();
  Floats buffer(4);
  expect_error(ErrorKind::usage, {"no group is open"}, [&] { ranks.end_group(); });
  ranks.begin_group();
  expect_error(ErrorKind::usage, {"open already"}, [&] { ranks.begin_group(); });
  const Work first = ranks.send(view(buffer), 1, {}, {});
  expect_error(ErrorKind::usage, {"all_reduce", "collectives, or sends and receives"},
               [&] { ranks.all_reduce(view(buffer), Reduction::sum, {}, {}); });
  expect_error(ErrorKind::usage, {"one stream"}, [&] { ranks.receive(view(buffer), 1, {}, queue); });
  expect_error(ErrorKind::usage, {"group that is open"}, [&] { ranks.wait(first); });
  ranks.receive(view(buffer, 0), 1, {}, {});
  ranks.receive(view(buffer), 2, {}, {});
  EXPECT_TRUE(ranks.log().empty()) << "a group goes when it ends";
  ranks.end_group();
  EXPECT_EQ(ranks.lines(), (std::vector<std::string>{"send #1 (gradient) of 4 fp32 elements to rank 1",
                                                     "receive #1 (gradient) of 4 fp32 elements from rank 2"}));
  EXPECT_EQ(ranks.log()[0].group, 1);
  ranks.wait(first);
  ranks.begin_group();
  ranks.end_group();
  EXPECT_EQ(ranks.log().size(), 2U);
}

// Where a backend does not want them together they go one by one, and of no elements none goes at all.
TEST(Communicator, AGroupOfCollectivesGoesWhenItEnds) {
  RecordCommunicator ranks(0, 2), alone(0, 1);
  Floats buffer(4), part(2);
  ranks.begin_group();
  ranks.all_reduce(view(buffer), Reduction::sum, {}, {});
  expect_error(ErrorKind::usage, {"send", "collectives, or sends and receives"},
               [&] { ranks.send(view(buffer), 1, {}, {}); });
  ranks.all_reduce(view(buffer, 0), Reduction::sum, {}, {});
  const Work last = ranks.all_gather(view(part), view(buffer), {}, {});
  EXPECT_TRUE(ranks.log().empty());
  ranks.end_group();
  ranks.wait(last);
  EXPECT_EQ(ranks.lines(), (std::vector<std::string>{"all_reduce #1 (gradient) of 4 fp32 elements, sum",
                                                     "all_gather #3 (gradient) of 2 fp32 elements"}));
  EXPECT_EQ(ranks.log()[0].group, 0);
  alone.begin_group();
  alone.all_gather(view(buffer), view(buffer), {}, {});
  alone.end_group();
  EXPECT_TRUE(alone.log().empty());
}

TEST(Communicator, NumbersCollectivesAlikeOnAllRanksAndMessagesByPair) {
  RecordCommunicator ranks(0, 3);
  Floats buffer(3);
  ranks.all_reduce(view(buffer), Reduction::sum, {"gradient", "bucket 0"}, {});
  ranks.send(view(buffer), 2, {"control"}, {});
  ranks.receive(view(buffer), 2, {"control"}, {});
  ranks.send(view(buffer), 1, {"control"}, {});
  ranks.send(view(buffer), 2, {"control"}, {});
  const Work last = ranks.broadcast(view(buffer), 2, {"parameter"}, {});
  EXPECT_EQ(last.sequence, 6U);
  EXPECT_EQ(ranks.lines(), (std::vector<std::string>{
                               "all_reduce #1 (gradient, bucket 0) of 3 fp32 elements, sum",
                               "send #1 (control) of 3 fp32 elements to rank 2",
                               "receive #1 (control) of 3 fp32 elements from rank 2",
                               "send #1 (control) of 3 fp32 elements to rank 1",
                               "send #2 (control) of 3 fp32 elements to rank 2",
                               "broadcast #2 (parameter) of 3 fp32 elements from rank 2",
                           }));
}

TEST(Communicator, OneRankAloneOrNoElementsAskNoBackend) {
  RecordCommunicator alone(0, 1), pair(0, 2);
  Floats all{1, 2, 3}, part(3);
  alone.all_gather(view(all), view(part), {}, {});
  alone.all_reduce(view(all), Reduction::sum, {}, {});
  EXPECT_EQ(part, all);
  pair.all_reduce(view(all, 0), Reduction::sum, {}, {});
  pair.reduce_scatter({nullptr, DType::f32, {0}}, {nullptr, DType::f32, {0}}, Reduction::sum, {}, {});
  EXPECT_TRUE(alone.log().empty());
  EXPECT_TRUE(pair.log().empty());
  EXPECT_EQ(pair.recorder().recorded(), 2U);
  EXPECT_EQ(pair.counters().total().calls, 2U);
  EXPECT_EQ(pair.counters().total().payload_bytes, 0U);
}

TEST(Communicator, ACopyOfOneRankAloneWaitsForItsStream) {
  RecordCommunicator alone(0, 1);
  const auto queue = device::OwnedStream::queue();
  Floats from{1, 2}, to(2);
  device::enqueue(queue, [&from] { from[0] = 5; });
  alone.wait(alone.all_gather(view(from), view(to), {}, queue));
  EXPECT_EQ(to, (Floats{5, 2}));
}

TEST(Communicator, CountsBytesByOperationAndPurpose) {
  RecordCommunicator ranks(3, 4);
  Floats all(40), part(10);
  ranks.all_reduce(view(all), Reduction::sum, {"gradient", "bucket 0"}, {});
  ranks.all_reduce(view(all, 20), Reduction::sum, {"gradient", "bucket 1"}, {});
  ranks.reduce_scatter(view(all), view(part), Reduction::sum, {"gradient"}, {});
  ranks.all_gather(view(part), view(all), {"parameter"}, {});
  ranks.broadcast(view(all), 0, {"parameter"}, {});
  ranks.send(view(part), 0, {"control"}, {});
  ranks.receive(view(part), 0, {"control"}, {});
  ranks.barrier();
  const Counters& counters = ranks.counters();
  EXPECT_EQ(counters.total(Operation::all_reduce).calls, 2U);
  EXPECT_EQ(counters.total(Operation::all_reduce).payload_bytes, 240U);
  EXPECT_EQ(counters.total(Operation::all_reduce).wire_bytes, 2 * 3.0 / 4 * 240);
  EXPECT_EQ(counters.total(Operation::reduce_scatter).wire_bytes, 3.0 / 4 * 160);
  EXPECT_EQ(counters.total(Operation::all_gather, "parameter").payload_bytes, 160U);
  EXPECT_EQ(counters.total(Operation::all_gather, "gradient").calls, 0U);
  EXPECT_EQ(counters.total(Operation::broadcast).wire_bytes, 3.0 / 4 * 160);
  EXPECT_EQ(counters.total("gradient").wire_bytes, 2 * 3.0 / 4 * 240 + 3.0 / 4 * 160);
  EXPECT_EQ(counters.total("control").wire_bytes, 40) << "a message counts where it is sent";
  EXPECT_EQ(counters.total(Operation::barrier).calls, 1U);
  EXPECT_NE(counters.text().find("all_reduce gradient: 2 calls, 240 B"), std::string::npos) << counters.text();
}

// Rank 0 of two on a backend that compares nothing by itself. Its peer calls what it is told to.
class Unchecked final : public HostCommunicator {
 public:
  Unchecked(bool check, std::function<void(Signature&)> peer_calls)
      : HostCommunicator(0, 2, {.limit = std::chrono::seconds(2), .check_signatures = check}),
        peer_calls_(std::move(peer_calls)) {}
  ~Unchecked() override { finish(); }
  std::string_view backend() const override { return "unchecked"; }

  int performed = 0, exchanged = 0, spreads = 0;
  bool exchange_fails = false;

 protected:
  void perform(std::span<const Call>) override { ++performed; }
  std::vector<std::string> exchange_now(const Call&, std::string_view text) override {
    ++exchanged;
    if (exchange_fails) throw Error(ErrorKind::comm, "rank 1 did not answer");
    Signature of_peer;
    text.copy(reinterpret_cast<char*>(&of_peer), sizeof of_peer);
    if (peer_calls_) peer_calls_(of_peer);
    return {std::string(text), std::string(reinterpret_cast<const char*>(&of_peer), sizeof of_peer)};
  }
  void spread(std::string_view) noexcept override { ++spreads; }

 private:
  std::function<void(Signature&)> peer_calls_;
};

TEST(CheckSignatures, ComparesBeforeABackendThatDoesNot) {
  Floats buffer(4);
  Unchecked same(true, {});
  same.all_reduce(view(buffer), Reduction::sum, {}, {});
  same.send(view(buffer), 1, {}, {});  // between two: not everybody's to compare
  EXPECT_EQ(same.performed, 2);
  EXPECT_EQ(same.exchanged, 1);

  Unchecked other(true, [](Signature& of_peer) { of_peer.count = 5; });
  expect_error(ErrorKind::comm, {"rank 0 calls all_reduce #1 (gradient) of 4", "rank 1 calls", "of 5"},
               [&] { other.all_reduce(view(buffer), Reduction::sum, {}, {}); });
  EXPECT_EQ(other.performed, 0) << "nothing has moved";
  EXPECT_EQ(other.spreads, 1);
  EXPECT_TRUE(other.failed());
  expect_error(ErrorKind::comm, {"of 5"}, [&] { other.barrier(); });

  Unchecked not_asked(false, [](Signature& of_peer) { of_peer.count = 5; });
  not_asked.all_reduce(view(buffer), Reduction::sum, {}, {});
  EXPECT_EQ(not_asked.performed, 1);
  EXPECT_EQ(not_asked.exchanged, 0);
}

TEST(HostOperation, ThatFailsEndsTheCommunication) {
  Unchecked ranks(false, {});
  ranks.exchange_fails = true;
  expect_error(ErrorKind::comm, {"rank 1 did not answer"}, [&] { ranks.barrier(); });
  EXPECT_EQ(ranks.spreads, 1);
  EXPECT_EQ(ranks.recorder().entries().back().state, FlightRecorder::State::failed);
  ranks.exchange_fails = false;
  expect_error(ErrorKind::comm, {"rank 1 did not answer"}, [&] { static_cast<void>(ranks.exchange("x")); });
  EXPECT_EQ(ranks.exchanged, 1);
}

TEST(FlightRecorder, TellsHowFarEachOperationHasCome) {
  RecordCommunicator ranks(1, 2);
  const auto queue = device::OwnedStream::queue();
  Floats buffer(8);
  ranks.all_reduce(view(buffer), Reduction::max, {"control", "agree"}, {});
  ranks.barrier();
  std::promise<void> go;
  device::enqueue(queue, [until = go.get_future().share()] { until.wait(); });
  const Work work = ranks.broadcast(view(buffer), 0, {"parameter"}, queue);
  auto entries = ranks.recorder().entries();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].state, FlightRecorder::State::done);
  EXPECT_LE(entries[0].queued, entries[0].started);
  EXPECT_LE(entries[0].started, entries[0].ended);
  EXPECT_EQ(entries[1].signature.operation, Operation::barrier);
  EXPECT_EQ(entries[2].state, FlightRecorder::State::queued);
  go.set_value();
  ranks.wait(work);
  EXPECT_EQ(ranks.recorder().entries()[2].state, FlightRecorder::State::done);

  const std::string text = ranks.recorder().text();
  for (const char* part : {"rank 1 of 2: 3 operations", "all_reduce #1 (control, agree) of 8 fp32 elements, max",
                           "barrier #1", "done", "broadcast #2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  const Json json = ranks.recorder().json();
  EXPECT_EQ(json.at("rank"), 1);
  EXPECT_EQ(json.at("recorded"), 3);
  const Json& first = json.at("operations").at(0);
  EXPECT_EQ(first.at("operation"), "all_reduce");
  EXPECT_EQ(first.at("label"), "agree");
  EXPECT_EQ(first.at("count"), 8);
  EXPECT_EQ(first.at("state"), "done");
  EXPECT_FALSE(json.at("operations").at(1).contains("count"));
}

TEST(FlightRecorder, KeepsTheLastOperations) {
  FlightRecorder recorder(0, 2, 3);
  Call call;
  for (std::uint64_t number = 1; number <= 5; ++number) {
    call.signature.number = number;
    EXPECT_EQ(recorder.add(call), number - 1);
  }
  recorder.start(4);
  recorder.end(0, false);  // passed over long ago
  const auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].signature.number, 3U);
  EXPECT_EQ(entries[0].state, FlightRecorder::State::queued);
  EXPECT_EQ(entries[2].signature.number, 5U);
  EXPECT_EQ(entries[2].state, FlightRecorder::State::started);
  EXPECT_EQ(recorder.recorded(), 5U);
  EXPECT_NE(recorder.text(1).find("the last 1\n"), std::string::npos);
  EXPECT_EQ(recorder.text(1).find("#4"), std::string::npos);
}

TEST(Purpose, IsCutAtACharacter) {
  EXPECT_EQ(FixedText<4>("abcdef").view(), "abc");
  EXPECT_EQ(FixedText<4>("ab\xC3\xA4z").view(), "ab") << "ä does not fit whole";
  EXPECT_EQ(FixedText<5>("ab\xC3\xA4").view(), "ab\xC3\xA4");
  EXPECT_EQ(FixedText<4>("").view(), "");
}

TEST(Record, TakesTheTimeThatItIsTold) {
  RecordCommunicator ranks(0, 1000, {},
                           [](const Signature& signature) { return std::chrono::milliseconds(signature.count); });
  Floats buffer(20);
  device::Event begin({}, device::Timing::yes), end({}, device::Timing::yes);
  const auto queue = device::OwnedStream::queue();
  begin.record(queue);
  ranks.all_reduce(view(buffer), Reduction::sum, {}, queue);
  end.record(queue);
  device::synchronize(queue);
  EXPECT_GE(device::elapsed(begin, end), std::chrono::milliseconds(20));
  EXPECT_EQ(ranks.exchange("v1").size(), 1000U);
  EXPECT_EQ(buffer, Floats(20)) << "nothing is moved";
}

}  // namespace
}  // namespace syslab::comm
