// What happens to ranks that are processes when one of them is killed, stopped, lost or wrong: every other ends within
// the limit and three seconds, says why, and leaves nothing. Each fault runs in jobs of its own, all of them at once:
// most of their time is waiting.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/process/process.hpp"
#include "tests/comm/ranks_fixture.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kLimit = 5s;  // many processes begin at once on few cores; jobs that go well must not meet it
// Of the machine, not of what is tested: starting processes while all other faults start theirs.
constexpr auto kStart = 8s;

struct RankPlan {
  std::vector<std::string> action;                 // step and what
  std::map<std::string, std::string> environment;  // beside the job's
  bool start = true;
};

struct RankEnd {
  ExitStatus status;
  std::string out, err;
  double seconds = 0;   // from the first end of the job to this one's
  bool in_time = true;  // ended by itself
};

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t got = 0; (got = ::read(fd, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// A job: what each rank does, where they meet, and how each ended.
class Job {
 public:
  explicit Job(std::vector<RankPlan> ranks) : plans_(std::move(ranks)) {}

  std::string rendezvous;  // empty: a fresh folder
  std::function<void(std::vector<Process>&)> meddle;
  bool stopped_rank = false;  // one will not end by itself

  std::vector<RankEnd> run() {
    const std::string place = rendezvous.empty() ? "file:" + (folder_.path() / "meeting").string() : rendezvous;
    std::vector<Process> processes;
    std::vector<int> numbers;
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      if (!plans_[rank].start) continue;
      SpawnOptions spawn;
      spawn.argv = {std::getenv("SYSLAB_TEST_RANK"), std::to_string(std::chrono::milliseconds(kLimit).count()), "100"};
      spawn.argv.insert(spawn.argv.end(), plans_[rank].action.begin(), plans_[rank].action.end());
      spawn.environment = {{"SYSLAB_RANK", std::to_string(rank)},
                           {"SYSLAB_WORLD_SIZE", std::to_string(plans_.size())},
                           {"SYSLAB_RENDEZVOUS", place},
                           {"TMPDIR", folder_.path().string()}};
      for (const auto& [name, value] : plans_[rank].environment) spawn.environment[name] = value;
      processes.push_back(Process::spawn(spawn));
    }
    if (meddle) meddle(processes);
    std::vector<RankEnd> ends(processes.size());
    const auto begin = Clock::now();
    std::size_t left = processes.size();
    std::vector<bool> ended(processes.size());
    while (left > (stopped_rank ? 1U : 0U) && Clock::now() - begin < kStart + kLimit + 3s) {
      for (std::size_t i = 0; i < processes.size(); ++i) {
        if (ended[i]) continue;
        if (const auto status = processes[i].poll()) {
          ended[i] = true;
          --left;
          ends[i].status = *status;
          ends[i].seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        }
      }
      std::this_thread::sleep_for(5ms);
    }
    for (std::size_t i = 0; i < processes.size(); ++i) {
      ends[i].in_time = ended[i];
      if (!ended[i]) processes[i].kill_group(SIGKILL);
      ends[i].status = processes[i].wait();
      ends[i].out = read_all(processes[i].from_child());
      ends[i].err = read_all(processes[i].error_output());
    }
    return ends;
  }

  // What ranks left behind, in the folder for everything that they make.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  TestFolder folder_;
  std::vector<RankPlan> plans_;
};

bool well(const RankEnd& end) { return !end.status.signalled && end.status.code == 0 && has(end.out, "done"); }

// `ranks` ended by themselves with an error that holds all `words`.
void expect_told(const std::vector<RankEnd>& ends, const std::set<int>& ranks, const std::vector<std::string>& words) {
  for (const int rank : ranks) {
    const RankEnd& end = ends[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(end.in_time) << "rank " << rank << " did not end: " << end.out << end.err;
    EXPECT_FALSE(well(end)) << "rank " << rank;
    for (const std::string& word : words) {
      EXPECT_TRUE(has(end.out, word)) << "rank " << rank << " does not say '" << word << "': " << end.out << end.err;
    }
  }
}

const RankPlan kGood{};
RankPlan does(const std::string& action) { return {.action = {"20", action}}; }

// Each is one fault. They run at once, each in a thread: what a thread of GoogleTest expects may fail in any.
using Fault = std::pair<const char*, std::function<void()>>;

void all_at_once(const std::vector<Fault>& faults) {
  std::vector<std::thread> threads;
  for (const auto& [name, run] : faults) {
    threads.emplace_back([name = name, run = run] {
      const testing::ScopedTrace trace("", 0, name);
      try {
        run();
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ProcessFaults, ARankThatDiesOrFailsEndsAllAtOnce) {
  all_at_once({
      {"killed in a step",
       [] {
         Job job({kGood, does("kill"), kGood});
         const auto ends = job.run();
         EXPECT_EQ(ends[1].status.code, SIGKILL);
         expect_told(ends, {0, 2}, {"rank 1"});
         EXPECT_LT(std::max(ends[0].seconds, ends[2].seconds) - ends[1].seconds, 4);
         EXPECT_EQ(job.leftovers(), std::vector<std::string>{});
       }},
      {"the coordinator killed",
       [] {
         Job job({does("kill"), kGood, kGood});
         const auto ends = job.run();
         expect_told(ends, {1, 2}, {"rank 0"});
         EXPECT_LT(std::max(ends[1].seconds, ends[2].seconds) - ends[0].seconds, 4);
         EXPECT_EQ(job.leftovers(), std::vector<std::string>{});
       }},
      {"an exception",
       [] {
         Job job({kGood, does("throw"), kGood});
         const auto ends = job.run();
         expect_told(ends, {0, 1, 2}, {"out of memory allocating 3.2 GB (fc1 activations)"});
         expect_told(ends, {0, 2}, {"rank 1"});
         EXPECT_EQ(job.leftovers(), std::vector<std::string>{});
       }},
      {"terminated by a scheduler",
       [] {
         Job job({kGood, does("terminate")});
         const auto ends = job.run();
         EXPECT_TRUE(ends[1].status.signalled);
         EXPECT_EQ(ends[1].status.code, SIGTERM);
         expect_told(ends, {0}, {"rank 1"});
       }},
      {"Ctrl-C",
       [] {
         Job job({does("interrupt"), does("interrupt")});
         const auto ends = job.run();
         for (const RankEnd& end : ends) EXPECT_TRUE(end.in_time && end.status.signalled && end.status.code == SIGINT);
       }},
      {"left too early",
       [] {
         Job job({kGood, does("leave"), kGood});
         const auto ends = job.run();
         EXPECT_TRUE(well(ends[1])) << ends[1].out;
         expect_told(ends, {0, 2}, {"rank 1"});
       }},
  });
}

TEST(ProcessFaults, ARankThatHangsEndsAllAtTheLimit) {
  all_at_once({
      {"stopped",
       [] {
         Job job({kGood, does("stop"), kGood});
         job.stopped_rank = true;
         const auto ends = job.run();
         EXPECT_FALSE(ends[1].in_time);
         expect_told(ends, {0, 2}, {"rank 1"});
       }},
      {"the coordinator stopped",
       [] {
         Job job({does("stop"), kGood, kGood});
         job.stopped_rank = true;
         expect_told(job.run(), {1, 2}, {"rank 0"});
       }},
      {"an endless loop",
       [] {
         Job job({kGood, does("loop")});
         job.stopped_rank = true;
         const auto ends = job.run();
         expect_told(ends, {0}, {"rank 1", "all_reduce"});
         // The control plane says what the backend cannot know: where that rank is.
         EXPECT_TRUE(has(ends[0].err, "in phase forward, step 20")) << ends[0].err;
       }},
  });
}

TEST(ProcessFaults, RanksThatDisagreeAreToldBeforeAnythingHangs) {
  all_at_once({
      {"another operation",
       [] {
         Job job({kGood, does("skip")});
         expect_told(job.run(), {0, 1}, {"all_reduce", "broadcast"});
       }},
      {"another count",
       [] {
         Job job({kGood, does("count")});
         expect_told(job.run(), {0, 1}, {"all_reduce", "4", "3"});
       }},
      {"another dtype",
       [] {
         Job job({kGood, does("dtype")});
         expect_told(job.run(), {0, 1}, {"fp32", "bf16"});
       }},
      {"another configuration",
       [] {
         Job job({{.environment = {{"TEST_CONFIG", "xl25"}}}, {.environment = {{"TEST_CONFIG", "xl26"}}}});
         expect_told(job.run(), {0, 1}, {"rank 1 differs in 'configuration': 'xl26' there, 'xl25' on rank 0"});
         EXPECT_EQ(job.leftovers(), std::vector<std::string>{});
       }},
      {"another world size",
       [] {
         Job job({kGood, {.environment = {{"SYSLAB_WORLD_SIZE", "8"}}}});
         expect_told(job.run(), {0, 1}, {"world size", "8", "2"});
       }},
      {"a rank that cannot be",
       [] {
         Job job({{.environment = {{"SYSLAB_RANK", "5"}}}});
         expect_told(job.run(), {0}, {"SYSLAB_RANK=5", "SYSLAB_WORLD_SIZE=1"});
       }},
  });
}

TEST(ProcessFaults, ARendezvousThatFailsSaysWhoIsMissing) {
  all_at_once({
      {"a rank that never comes",
       [] {
         Job job({kGood, kGood, {.start = false}});
         expect_told(job.run(), {0, 1}, {"rank 2 of 3"});
         EXPECT_EQ(job.leftovers(), std::vector<std::string>{});
       }},
      {"killed in the rendezvous",
       [] {
         const FreePort port;
         for (const std::string& place : {std::string(), port.address("job")}) {
           Job job({kGood, kGood, {.start = false}});
           job.rendezvous = place;
           job.meddle = [](std::vector<Process>& ranks) {
             std::this_thread::sleep_for(1s);  // of its five
             ranks[1].kill_group(SIGKILL);
           };
           const auto ends = job.run();
           EXPECT_TRUE(ends[1].status.signalled);
           expect_told(ends, {0}, {});
           // It may not have come so far: then it is missing like the third. Or have been gone when rank 0 came.
           const std::string& told = ends[0].out;
           const bool named = has(told, "rank 1 (") || has(told, "rank 1 was") || has(told, "1 and 2 of 3");
           EXPECT_TRUE(named) << told << ends[0].err;
           EXPECT_EQ(job.leftovers(), std::vector<std::string>{});
         }
       }},
      {"what an earlier run left",
       [] {
         const TestFolder folder;
         const std::string place = "file:" + folder.path().string();
         Job first({does("kill"), does("kill")});
         first.rendezvous = place;
         first.run();
         ASSERT_FALSE(std::filesystem::is_empty(folder.path()));
         Job second({kGood, kGood});
         second.rendezvous = place;
         expect_told(second.run(), {0, 1}, {"earlier run", folder.path().string()});
       }},
  });
}

TEST(ProcessFaults, JobsGoWellBesideEachOtherAndBesideStrangers) {
  all_at_once({
      {"stopped as a whole for longer than the limit, and continued",
       [] {
         const FreePort port;
         Job job({kGood, kGood});
         job.rendezvous = port.address("job");
         job.meddle = [](std::vector<Process>& ranks) {
           std::this_thread::sleep_for(250ms);
           for (Process& rank : ranks) rank.kill_group(SIGSTOP);
           std::this_thread::sleep_for(kLimit + 500ms);
           for (Process& rank : ranks) rank.kill_group(SIGCONT);
         };
         // In an operation they may have reached its limit; between two they go on. Either way nobody blames the other
         // for its silence.
         for (const RankEnd& end : job.run())
           EXPECT_FALSE(has(end.out + end.err, "stopped beating") || has(end.out + end.err, "has not been heard"))
               << end.out << end.err;
       }},
      {"two jobs on the same ports",
       [] {
         const FreePort port;
         std::vector<std::future<std::vector<RankEnd>>> jobs;
         for (const char* token : {"one", "two"}) {
           jobs.push_back(std::async(std::launch::async, [&port, token] {
             Job job({kGood, kGood});
             job.rendezvous = port.address(token);
             return job.run();
           }));
         }
         for (auto& job : jobs) {
           for (const RankEnd& end : job.get()) EXPECT_TRUE(well(end)) << end.out << end.err;
         }
         EXPECT_TRUE(listen_tcp("127.0.0.1", port.number()));
       }},
      {"torchrun's agent holds the port",
       [] {
         const FreePort port;
         const FileDescriptor agent = listen_tcp("127.0.0.1", port.number());
         ASSERT_TRUE(agent);
         std::vector<RankPlan> ranks(2);
         for (int rank = 0; rank < 2; ++rank) {
           // The job's own variables are emptied: torchrun's alone speak.
           ranks[static_cast<std::size_t>(rank)].environment = {{"SYSLAB_RANK", ""},
                                                                {"SYSLAB_WORLD_SIZE", ""},
                                                                {"SYSLAB_RENDEZVOUS", ""},
                                                                {"RANK", std::to_string(rank)},
                                                                {"WORLD_SIZE", "2"},
                                                                {"LOCAL_RANK", std::to_string(rank)},
                                                                {"LOCAL_WORLD_SIZE", "2"},
                                                                {"MASTER_ADDR", "127.0.0.1"},
                                                                {"MASTER_PORT", std::to_string(port.number())},
                                                                {"TORCHELASTIC_RUN_ID", "none"},
                                                                {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
         }
         Job job(std::move(ranks));
         for (const RankEnd& end : job.run()) EXPECT_TRUE(well(end)) << end.out << end.err;
         // Nobody so much as knocked at the agent's.
         EXPECT_LT(::accept(agent.get(), nullptr, nullptr), 0);
       }},
      {"mpirun's variables",
       [] {
         std::vector<RankPlan> ranks(2);
         for (int rank = 0; rank < 2; ++rank) {
           ranks[static_cast<std::size_t>(rank)].environment = {
               {"SYSLAB_RANK", ""},
               {"SYSLAB_WORLD_SIZE", ""},
               {"SYSLAB_RENDEZVOUS", ""},
               {"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
               {"OMPI_COMM_WORLD_SIZE", "2"},
               {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank)},
               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
               {"PMIX_NAMESPACE", "test-" + std::to_string(::getpid())}};
         }
         Job job(std::move(ranks));
         for (const RankEnd& end : job.run()) EXPECT_TRUE(well(end)) << end.out << end.err;
       }},
  });
}

}  // namespace
}  // namespace syslab::comm
