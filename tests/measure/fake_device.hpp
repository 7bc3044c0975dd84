// A subject, a device and a clock that run on no real time: every call takes what a function says, and everything that
// happens is written down.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/sampler.hpp"

namespace syslab::measure {

class FakeClock final : public Clock, public Sleeper {
 public:
  Nanoseconds now() override { return now_; }
  void advance(Nanoseconds by) { now_ += by; }
  void sleep(Nanoseconds duration) override {
    slept.push_back(duration);
    now_ += duration;
  }
  std::vector<Nanoseconds> slept;

 private:
  Nanoseconds now_{};
};

// As simple as the host, until a test makes it queue, tell its clock rate or capture graphs.
class FakeDevice final : public Device {
 public:
  FakeDevice(FakeClock& clock, std::vector<std::string>& events) : clock_(clock), events_(events) {}

  std::string name() const override { return "fake"; }
  std::uint64_t last_level_cache() const override { return cache; }
  int most_windows() const override { return block; }

  void queue_window(const std::function<void()>& work) override {
    const Nanoseconds start = clock_.now();
    work();
    windows_.push_back({.elapsed = clock_.now() - start, .clock_hz = std::nullopt});
    if (clock_rate) windows_.back().clock_hz = clock_rate();
    if (flags) windows_.back().flags = flags();
  }
  std::vector<Window> collect() override {
    blocks.push_back(static_cast<int>(windows_.size()));
    return std::exchange(windows_, {});
  }
  void synchronize() override {}
  GpuState state() const override { return driver_tells ? driver_tells() : GpuState{}; }
  void flush(std::uint64_t bytes) override {
    clock_.advance(flush_cost);
    events_.push_back("flush " + std::to_string(bytes));
  }
  bool captures_graphs() const override { return captures; }
  Captured capture(const std::function<void()>& work) override {
    ++captured;
    if (!capturable) return {nullptr, "the work waits"};
    recording = std::make_unique<std::vector<std::function<void()>>>();
    work();
    return {std::make_unique<FakeGraph>(*std::exchange(recording, nullptr), replays), {}};
  }
  // What a call does: at once, or when its graph is replayed.
  void work(std::function<void()> done) {
    if (recording) {
      recording->push_back(std::move(done));
    } else {
      done();
    }
  }

  int block = 1;
  std::uint64_t cache = 1 << 20;
  std::function<double()> clock_rate;   // of the window just queued
  std::function<std::int64_t()> flags;  // the same
  std::function<GpuState()> driver_tells;
  bool captures = false, capturable = true;
  Nanoseconds flush_cost{};
  std::vector<int> blocks;  // windows of each collect()
  int captured = 0, replays = 0;

 private:
  class FakeGraph final : public Graph {
   public:
    FakeGraph(std::vector<std::function<void()>> work, int& replays) : work_(std::move(work)), replays_(replays) {}
    void replay() override {
      ++replays_;
      for (const auto& each : work_) each();
    }

   private:
    std::vector<std::function<void()>> work_;
    int& replays_;
  };

  FakeClock& clock_;
  std::vector<std::string>& events_;
  std::vector<Window> windows_;
  std::unique_ptr<std::vector<std::function<void()>>> recording;
};

struct FakeLab {
  FakeClock clock;
  std::vector<std::string> events;  // "call 3", "refresh 3", "verify 3": kind and set; "flush 1024": bytes
  FakeDevice device{clock, events};
  std::function<Nanoseconds(int call)> duration;  // of the n-th call
  Nanoseconds refresh_cost{}, verify_cost{};
  int calls = 0;

  Subject subject(int sets = 1) {
    Subject made;
    made.sets = sets;
    made.call = [this](int set) {
      device.work([this, set] {
        clock.advance(duration(calls++));
        events.push_back("call " + std::to_string(set));
      });
    };
    made.refresh = [this](int set) {
      clock.advance(refresh_cost);
      events.push_back("refresh " + std::to_string(set));
    };
    made.verify = [this](int set) {
      clock.advance(verify_cost);
      events.push_back("verify " + std::to_string(set));
      return true;
    };
    return made;
  }
  Samples take(const Protocol& protocol, const Subject& subject, std::uint64_t random = 42) {
    return take_samples(protocol, subject, {device, clock, clock}, random, {});
  }
  Samples take(const Protocol& protocol = {}, int sets = 1) { return take(protocol, subject(sets)); }
};

}  // namespace syslab::measure
