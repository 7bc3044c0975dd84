// Two sides as a launch takes them: self-tests, or workers of a few lines of Python.
#pragma once

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runner/paired/paired.hpp"
#include "tests/runner/lab.hpp"

namespace syslab::runner {

// A worker of a few lines of Python, which does what its first argument says.
inline std::vector<std::string> fake_worker(const std::string& behaviour) {
  return {"python3", std::getenv("SYSLAB_FAKE_WORKER"), behaviour};
}

struct Pair {
  registry::Experiment compare, faults;
  PairedSide a, b;
  PairedOptions options;
  std::vector<std::string> events;
  Observer observer;

  Pair() {
    compare.id = "selftest_compare";
    faults.id = "selftest_faults";
    a = side("A");
    b = side("B");
    options.protocol = "quick";
    options.blocks_per_launch = 3;
    options.burst = std::chrono::milliseconds(2);
    options.timeout = std::chrono::seconds(20);
    options.seed = 5;
    observer.started = [this](const plan::PlannedCase& it) { events.push_back("started " + it.case_uid); };
    observer.progress = [this](const plan::PlannedCase& it, const worker::ProgressRecord& record) {
      events.push_back(it.case_uid + ": " + record.text);
    };
  }

  PairedSide side(const std::string& label, const std::string& fault = "none", double slowdown = 0) const {
    PairedSide made;
    made.label = label;
    made.planned.experiment = &compare;
    made.planned.params = {
        {"steps", std::int64_t{100'000}}, {"slowdown", slowdown}, {"work", std::string("chain")}, {"fault", fault}};
    made.planned.implementation = "selftest";
    made.planned.case_uid = label;
    made.planned.seed = 7;
    made.worker_command = worker_host();
    return made;
  }

  PairedLaunch run(int launch = 0) {
    const Interruption interruption;
    PairedLaunch done = run_paired_launch(a, b, launch, options, observer, interruption);
    EXPECT_EQ(workers_alive(), 0);
    EXPECT_EQ(done.a.planned, &a.planned);
    EXPECT_EQ(done.b.planned, &b.planned);
    return done;
  }
};

inline std::vector<double> times_of(const AttemptResult& result) {
  for (const worker::Record& record : result.records) {
    const auto* sample = std::get_if<worker::SampleRecord>(&record);
    if (sample != nullptr && sample->series == "time") return sample->values;
  }
  return {};
}

inline Json paired_facts(const AttemptResult& result) { return Json::parse(result.facts_json).at("paired"); }

}  // namespace syslab::runner
