// A lab in this process and its agent in a child of it, without any worker of a case: this program's verb `worker`
// reads a line and has a shell do what it says.
#include "agents/agent.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "comm/rendezvous/agree.hpp"
#include "core/error.hpp"
#include "core/process/pipe.hpp"
#include "runner/request.hpp"

namespace syslab::agents {
namespace {

using namespace std::chrono_literals;

// The agent is forked before the lab makes its threads.
class OneAgent : public testing::Test {
 protected:
  OneAgent() {
    folder_ = (std::filesystem::temp_directory_path() / "syslab-agents-XXXXXX").string();
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    agent_ = ::fork();
    if (agent_ == 0) {
      int code = 9;
      try {
        code = serve_agent(launch(1), {});
      } catch (const std::exception&) {
        code = 8;
      }
      ::_exit(code);
    }
    lab_.emplace(launch(0), LaunchOrders{});
  }

  ~OneAgent() override {
    lab_.reset();
    if (agent_ > 0) {
      ::kill(agent_, SIGKILL);
      ::waitpid(agent_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  comm::LaunchEnvironment launch(int rank) const {
    comm::LaunchEnvironment made;
    made.rank = made.local_rank = rank;
    made.size = made.local_size = 2;
    made.rendezvous = "file:" + folder_ + "/meeting";
    return made;
  }

  int agents_end() {
    int status = 0;
    ::waitpid(std::exchange(agent_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::unique_ptr<runner::Hosted> shell(const std::string& script) {
    auto worker = lab_->start(1, {.argv = runner::own_worker_command(), .environment = {{"OMP_NUM_THREADS", "3"}}});
    const std::string line = script + "\n";
    EXPECT_EQ(::write(worker->to_child(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
    return worker;
  }

  static ExitStatus end_of(runner::Hosted& worker) {
    for (const auto until = Clock::now() + 20s; Clock::now() < until; std::this_thread::sleep_for(1ms)) {
      if (const auto exit = worker.poll()) return *exit;
    }
    ADD_FAILURE() << "no end";
    return {};
  }

  static std::string printed(int descriptor) {
    TailReader reader(descriptor);
    for (const auto until = Clock::now() + 20s; reader.drain() && Clock::now() < until;)
      std::this_thread::sleep_for(1ms);
    return reader.text();
  }

  std::string folder_;
  pid_t agent_ = -1;
  std::optional<Lab> lab_;
};

TEST_F(OneAgent, AWorkersStreamsEndAtTheLab) {
  const auto worker = shell("read word; echo \"$word $OMP_NUM_THREADS\"; echo trouble >&2; exit 7");
  ASSERT_EQ(::write(worker->to_child(), "hello\n", 6), 6);
  EXPECT_EQ(printed(worker->from_child()), "hello 3\n");
  EXPECT_EQ(printed(worker->error_output()), "trouble\n");
  const ExitStatus exit = end_of(*worker);
  EXPECT_FALSE(exit.signalled);
  EXPECT_EQ(exit.code, 7);
  EXPECT_GT(exit.usage.ru_maxrss, 0);
}

// More than the system's buffers hold, read as it comes: the end is told on another connection and may be here first.
TEST_F(OneAgent, WhatAWorkerSaidLastHasArrivedWhenItIsKnownToHaveEnded) {
  constexpr std::size_t kSaid = 3'000'000;
  for (int i = 0; i < 5; ++i) {
    const auto worker = shell("head -c " + std::to_string(kSaid) + " /dev/zero");
    std::string chunk(10'000, '\0');
    std::size_t have = 0;
    const auto read_what_is_there = [&] {
      for (ssize_t got = 0; (got = ::read(worker->from_child(), chunk.data(), chunk.size())) > 0;) {
        have += static_cast<std::size_t>(got);
      }
    };
    for (const auto until = Clock::now() + 20s; !worker->poll() && Clock::now() < until;) read_what_is_there();
    read_what_is_there();
    EXPECT_EQ(have, kSaid);
  }
}

TEST_F(OneAgent, AKilledWorkerTakesItsGroupAlong) {
  const auto worker = shell("sleep 1000 & sleep 1000");
  worker->kill_group(SIGKILL);
  const ExitStatus exit = end_of(*worker);
  EXPECT_TRUE(exit.signalled);
  EXPECT_EQ(exit.code, SIGKILL);
}

TEST_F(OneAgent, AProgramThatIsNotTheAgentsOwnIsRefused) {
  try {
    lab_->start(1, {.argv = {"/bin/sh", "-c", "exit 0"}});
    ADD_FAILURE() << "it started";
  } catch (const Error& error) {
    EXPECT_EQ(error.call(), runner::kNoPlace);
    EXPECT_NE(std::string(error.what()).find("the agent of rank 1"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("/bin/sh"), std::string::npos) << error.what();
  }
  EXPECT_EQ(end_of(*shell("exit 3")).code, 3);
}

TEST_F(OneAgent, AVariableThatIsNotForWorkersIsAnErrorOfThatWorkerAlone) {
  try {
    lab_->start(1, {.argv = runner::own_worker_command(), .environment = {{"LD_PRELOAD", "/tmp/evil.so"}}});
    ADD_FAILURE() << "it started";
  } catch (const Error& error) {
    EXPECT_EQ(error.call(), runner::kNoPlace);
    EXPECT_NE(std::string(error.what()).find("LD_PRELOAD"), std::string::npos) << error.what();
  }
  EXPECT_EQ(end_of(*shell("exit 3")).code, 3);
}

TEST_F(OneAgent, AnAgentThatDiedIsNamedInItsWorkersEnd) {
  const auto worker = shell("sleep 1000");
  ::kill(agent_, SIGKILL);
  EXPECT_NE(end_of(*worker).lost.find("the agent of rank 1"), std::string::npos);
  EXPECT_THROW(shell("exit 0"), Error);
}

TEST_F(OneAgent, AnAgentThatDoesNotAnswerIsGivenUp) {
  const auto worker = shell("sleep 1000");
  ::kill(agent_, SIGSTOP);
  worker->kill_group(SIGKILL);
  const auto began = Clock::now();
  EXPECT_NE(end_of(*worker).lost.find("does not answer"), std::string::npos);
  EXPECT_LT(Clock::now() - began, 2 * kAnswer);
}

template <typename Holds>
bool comes_true(Holds holds) {
  for (const auto until = Clock::now() + 10s; Clock::now() < until; std::this_thread::sleep_for(5ms)) {
    if (holds()) return true;
  }
  return false;
}

TEST_F(OneAgent, AWorkerThatIsStoppedIsSeenToBeSoWhileItIs) {
  const auto worker = shell("kill -STOP $$; exec sleep 1000");
  EXPECT_TRUE(comes_true([&] { return worker->is_stopped(); }));
  worker->kill_group(SIGCONT);
  EXPECT_TRUE(comes_true([&] { return !worker->is_stopped(); }));
}

// What somebody who cannot be heard might still say, or answer, is not waited for.
TEST_F(OneAgent, AnAgentThatIsNotHeardIsOutOfReach) {
  const auto worker = shell("exec sleep 1000");
  for (const auto until = Clock::now() + 2 * kSilence; Clock::now() < until; std::this_thread::sleep_for(5ms)) {
    ASSERT_FALSE(worker->is_out_of_reach());
  }
  ::kill(agent_, SIGSTOP);
  const auto stopped = Clock::now();
  EXPECT_TRUE(comes_true([&] { return worker->is_out_of_reach(); }));
  EXPECT_GT(Clock::now() - stopped, kSilence / 2);
  worker->kill_group(SIGKILL);
  const auto killed = Clock::now();
  EXPECT_NE(end_of(*worker).lost.find("does not answer"), std::string::npos);
  EXPECT_LT(Clock::now() - killed, kAnswer);
}

TEST_F(OneAgent, AnAgentEndsWellWithTheLab) {
  lab_.reset();
  EXPECT_EQ(agents_end(), 0);
}

// Whoever leads the launch, an order cannot say what is run: here it is one as labs of older builds sent it.
TEST(FakeLab, ThatOrdersAProgramIsRefused) {
  std::string folder = (std::filesystem::temp_directory_path() / "syslab-agents-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  comm::LaunchEnvironment launch;
  launch.rank = launch.local_rank = 1;
  launch.size = launch.local_size = 2;
  launch.rendezvous = "file:" + folder + "/meeting";
  const pid_t agent = ::fork();
  if (agent == 0) {
    try {
      ::_exit(serve_agent(launch, {}));
    } catch (const std::exception&) {
      ::_exit(8);
    }
  }
  {
    const auto rendezvous = comm::open_rendezvous({.address = launch.rendezvous, .rank = 0, .size = 2, .limit = 10s});
    comm::agree(*rendezvous, "launch", {{"command line", ""}}, 10s);
    rendezvous->gather("lab/place", "", 10s);
    FileDescriptor listener = comm::listen_tcp("127.0.0.1", 0);
    const auto port = static_cast<std::uint64_t>(comm::port_of(listener));
    comm::Reception reception(std::move(listener), agents_key(*rendezvous, "name"));
    rendezvous->set("lab", (comm::Packet() << "127.0.0.1" << port << "name").bytes());
    std::vector<comm::Admitted> admitted;
    for (int i = 0; i < 5'000 && admitted.empty(); ++i, std::this_thread::sleep_for(1ms)) admitted = reception.admit();
    ASSERT_EQ(admitted.size(), 1U);
    comm::MessageClient line(std::move(admitted.front()));
    ASSERT_TRUE(read_opening(line.receive(Clock::now() + 5s).payload));

    const std::string trace = folder + "/it-ran";
    comm::Packet ordered;
    ordered << order::start << std::uint64_t{1} << std::uint64_t{3} << "/bin/sh"
            << "-c"
            << "touch " + trace << std::uint64_t{0};
    ASSERT_TRUE(line.send(ordered, Clock::now() + 5s));
    const comm::MessageClient::Message answer = line.receive(Clock::now() + 5s);
    comm::PacketReader reader{std::string_view(answer.payload)};
    EXPECT_EQ(reader.number(), order::refused);
    EXPECT_EQ(reader.number(), 1U);
    EXPECT_NE(reader.text().find("'/bin/sh'"), std::string::npos);
    ASSERT_TRUE(line.send(comm::Packet() << order::bye, Clock::now() + 5s));
    int status = 0;
    ::waitpid(agent, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_FALSE(std::filesystem::exists(trace));
  }
  std::filesystem::remove_all(folder);
}

TEST_F(OneAgent, OfOneHostACaseMeetsInAFolder) { EXPECT_EQ(lab_->rendezvous(2), ""); }

}  // namespace
}  // namespace syslab::agents

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "worker") {
    std::string script;
    for (char c = 0; ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) script += c;
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    return 127;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
