#include "agents/orders.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

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
  const comm::Packet packet = to_packet(StartOrder{7, {{"OMP_NUM_THREADS", "2"}, {"OMP_WAIT_POLICY", ""}}});
  comm::PacketReader reader{std::string_view(packet.bytes())};
  EXPECT_EQ(reader.number(), order::start);
  WorkerId worker = 0;
  const StartOrder read = read_start(reader, worker);
  EXPECT_EQ(worker, 7U);
  EXPECT_EQ(read.worker, 7U);
  EXPECT_EQ(read.environment, (std::map<std::string, std::string>{{"OMP_WAIT_POLICY", ""}, {"OMP_NUM_THREADS", "2"}}));
  EXPECT_TRUE(reader.at_end());
}

TEST(Orders, AStartThatWouldLoadALibraryIsNone) {
  for (const char* name : {"LD_PRELOAD", "PATH", "SYSLAB_PYTHON", "omp_num_threads", ""}) {
    const comm::Packet packet = to_packet(StartOrder{7, {{name, "x"}}});
    comm::PacketReader reader{std::string_view(packet.bytes())};
    reader.number();
    WorkerId worker = 0;
    EXPECT_THROW(read_start(reader, worker), Error) << name;
    EXPECT_EQ(worker, 7U);  // whose refusal can be told
  }
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
  const std::optional<Opening> read = read_opening(to_packet(Opening{.rank = 4, .seat = some_seat()}).bytes());
  ASSERT_TRUE(read && read->seat);
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

TEST(Opening, OfAWorkerBringsItsNumber) {
  const std::optional<Opening> read = read_opening(to_packet(Opening{.rank = 1, .worker = 9}).bytes());
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->seat);
  EXPECT_EQ(read->worker, 9U);
}

TEST(Opening, ThatIsCutShortOrOfAnotherVersionIsNone) {
  std::string bytes = to_packet(Opening{.rank = 4, .seat = some_seat()}).bytes();
  EXPECT_FALSE(read_opening(bytes.substr(0, bytes.size() - 1)));
  bytes.front() ^= 4;
  EXPECT_FALSE(read_opening(bytes));
  EXPECT_FALSE(read_opening(""));
}

// Two ends whose sessions belong together.
std::pair<comm::MessageClient, comm::MessageClient> proven_pair() {
  SocketPair pair;
  const Key key = random_key(), other = random_key();
  return {comm::MessageClient(std::move(pair.one), {key, other}),
          comm::MessageClient(std::move(pair.other), {other, key})};
}

// The end is told on another connection than the last words come on, and may overtake them.
TEST(RemoteWorker, HasNotEndedBeforeItsStreamsHave) {
  auto [lab_line, agent_end] = proven_pair();
  auto [lab_streams, agent_streams] = proven_pair();
  const auto lab_end = std::make_shared<Line>(std::move(lab_line), 1, some_seat());
  RemoteWorker worker(lab_end, 5, std::move(lab_streams));
  EndedWorker ended{5, {}};
  ended.exit.code = 7;
  ASSERT_TRUE(agent_end.send(to_packet(ended), Clock::now() + 5s));
  EXPECT_FALSE(worker.poll());
  for (const std::uint64_t stream : {1, 2}) {
    ASSERT_TRUE(agent_streams.send(comm::Packet() << stream << "", Clock::now() + 5s));
  }
  std::optional<ExitStatus> exit;
  for (int i = 0; i < 500 && !exit; ++i, std::this_thread::sleep_for(1ms)) exit = worker.poll();  // < kArrival
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 7);
}

}  // namespace
}  // namespace syslab::agents
