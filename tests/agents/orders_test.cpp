#include "agents/orders.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agents/line.hpp"
#include "core/error.hpp"

namespace syslab::agents {
namespace {

using namespace std::chrono_literals;

struct SocketPair {
  FileDescriptor one, other;
  SocketPair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    one.reset(ends[0]);
    other.reset(ends[1]);
  }
};

Seat some_seat() {
  Seat seat;
  seat.host = "node7";
  seat.system = "boot.1";
  seat.processors = "0-3,8";
  seat.processor_count = 5;
  seat.threads_are_set = true;
  seat.gpus = {"0", "GPU-77"};
  seat.local_rank = 3;
  return seat;
}

TEST(Orders, AStartIsReadAsItWasWritten) {
  const comm::Packet packet =
      to_packet(StartOrder{7, {"", "worker", "two words"}, {{"OMP_NUM_THREADS", "2"}, {"EMPTY", ""}}});
  comm::PacketReader reader{std::string_view(packet.bytes())};
  EXPECT_EQ(reader.number(), order::start);
  const StartOrder read = read_start(reader);
  EXPECT_EQ(read.worker, 7U);
  EXPECT_EQ(read.argv, (std::vector<std::string>{"", "worker", "two words"}));
  EXPECT_EQ(read.environment, (std::map<std::string, std::string>{{"EMPTY", ""}, {"OMP_NUM_THREADS", "2"}}));
  EXPECT_TRUE(reader.at_end());
}

TEST(Orders, AnEndKeepsHowAndWhatWasUsed) {
  EndedWorker ended;
  ended.worker = 3;
  ended.exit.signalled = true;
  ended.exit.code = 11;
  ended.exit.usage.ru_maxrss = 123'456;
  ended.exit.usage.ru_utime = {5, 250'000};
  const comm::Packet packet = to_packet(ended);
  comm::PacketReader reader{std::string_view(packet.bytes())};
  EXPECT_EQ(reader.number(), order::ended);
  const EndedWorker read = read_ended(reader);
  EXPECT_EQ(read.worker, 3U);
  EXPECT_EQ(read.exit.describe(), ended.exit.describe());
  EXPECT_EQ(read.exit.usage.ru_maxrss, 123'456);
  EXPECT_EQ(read.exit.usage.ru_utime.tv_sec, 5);
  EXPECT_EQ(read.exit.usage.ru_utime.tv_usec, 250'000);
}

TEST(Opening, OfALineBringsTheSeat) {
  const SocketPair pair;
  send_opening(pair.one.get(), {.secret = "s", .rank = 4, .seat = some_seat()}, Clock::now() + 1s);
  const std::optional<Opening> read = receive_opening(pair.other.get(), Clock::now() + 1s);
  ASSERT_TRUE(read && read->seat);
  EXPECT_EQ(read->secret, "s");
  EXPECT_EQ(read->rank, 4);
  const Seat& seat = *read->seat;
  EXPECT_EQ(seat.host, "node7");
  EXPECT_EQ(seat.system, "boot.1");
  EXPECT_EQ(seat.processors, "0-3,8");
  EXPECT_EQ(seat.processor_count, 5);
  EXPECT_TRUE(seat.threads_are_set);
  EXPECT_EQ(seat.gpus, (std::vector<std::string>{"0", "GPU-77"}));
  EXPECT_EQ(seat.local_rank, 3);
}

TEST(Opening, LeavesWhatFollowsItToTheWorker) {
  const SocketPair pair;
  send_opening(pair.one.get(), {.secret = "s", .rank = 1, .worker = 9, .stream = 2}, Clock::now() + 1s);
  ASSERT_EQ(::write(pair.one.get(), "frames", 6), 6);
  const std::optional<Opening> read = receive_opening(pair.other.get(), Clock::now() + 1s);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->seat);
  EXPECT_EQ(read->worker, 9U);
  EXPECT_EQ(read->stream, 2);
  std::array<char, 16> rest{};
  EXPECT_EQ(::read(pair.other.get(), rest.data(), rest.size()), 6);
  EXPECT_EQ(std::string_view(rest.data(), 6), "frames");
}

TEST(Opening, OfAStrangerIsNone) {
  for (const std::string& words : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(64, '\0'), std::string("abc")}) {
    SocketPair pair;
    ASSERT_EQ(::write(pair.one.get(), words.data(), words.size()), static_cast<ssize_t>(words.size()));
    pair.one.reset();
    EXPECT_FALSE(receive_opening(pair.other.get(), Clock::now() + 1s)) << words;
  }
  const SocketPair silent;
  EXPECT_FALSE(receive_opening(silent.other.get(), Clock::now() + 10ms));
}

// The end is told on another connection than the last words come on, and may overtake them.
TEST(RemoteWorker, HasNotEndedBeforeItsStreamsHave) {
  SocketPair line, input, output, errors;
  const auto lab_end = std::make_shared<Line>(std::move(line.one), 1, some_seat());
  comm::MessageClient agent_end(std::move(line.other));
  RemoteWorker worker(lab_end, 5, {std::move(input.one), std::move(output.one), std::move(errors.one)});
  EndedWorker ended{5, {}};
  ended.exit.code = 7;
  ASSERT_TRUE(agent_end.send(to_packet(ended), Clock::now() + 5s));
  EXPECT_FALSE(worker.poll());
  output.other.reset();
  errors.other.reset();
  const auto exit = worker.poll();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 7);
}

}  // namespace
}  // namespace syslab::agents
