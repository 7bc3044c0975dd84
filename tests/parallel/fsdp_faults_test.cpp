// The power of full sharding's certificate: no wait of a step can be left out, and faults that are planted show. These
// races are meant: part of the program that ThreadSanitizer does not run.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/parallel/fsdp_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::sharded_difference;
using test::three_layers;
using test::WaitOf;

// Of a step of this case, whatever it trains, in the order in which they are made.
std::vector<WaitOf> waits_of(const FsdpCertificateCase& asked) {
  std::vector<WaitOf> waits;
  test::with_ranks(1, [&](comm::Communicator& ranks, Stream compute, Stream communication) {
    test::InterferingObserver observer({.waits = [&](const WaitOf& wait) {
      waits.push_back(wait);
      return true;
    }});
    FsdpOptions options = asked.options;
    options.observer = &observer;
    Fsdp fsdp(ranks, parts_of(asked), options, compute, communication);
    const int layers = static_cast<int>(fsdp.parts().brackets.size());
    const auto read = [&](int bracket) {
      static_cast<void>(fsdp.gathered().read(bracket));
      fsdp.gathered().done(bracket);
    };
    for (int part = 0; part < asked.asked.parts; ++part) {
      fsdp.begin(PassKind::training, part > 0);
      for (int bracket = layers - 1; bracket >= 0; --bracket) read(bracket);
      for (int bracket = 0; bracket < layers; ++bracket) {
        static_cast<void>(fsdp.scattered().place(bracket));
        if (bracket + 1 < layers) read(bracket);
        fsdp.scattered().final(bracket);
        if (asked.asked.model.layers[static_cast<std::size_t>(layers - 1 - bracket)].bias) {
          fsdp.scattered().replicated_final();
        }
      }
      fsdp.end();
    }
    fsdp.finish();
    device::synchronize(compute);
    device::synchronize(communication);
  });
  return waits;
}

// All waits of a step are made but one, which is counted from 0: one of the same name comes in each part of a step.
std::function<bool(const WaitOf&)> all_but(int left_out) {
  return [left_out, at = 0](const WaitOf& wait) mutable {
    at = wait.wait == Wait::step_begun ? 0 : at + 1;
    return at != left_out;
  };
}

// Tries with ever longer delays of computing or of communication until the fault shows. The delay makes the wait
// matter: without it the other stream may be late by itself.
bool shows(const FsdpCertificateCase& asked, int left_out) {
  for (auto delay = std::chrono::microseconds(500); delay < std::chrono::milliseconds(300); delay *= 2) {
    for (const bool late_computing : {true, false}) {
      const auto late = [&](int) {
        auto compute = std::make_shared<std::optional<Stream>>();
        const auto sleep = [delay](Stream stream) { test::sleep_in(stream, delay); };
        if (!late_computing) return test::Lateness{{}, sleep, all_but(left_out)};
        // Told of communication first, when the first pass begins.
        return test::Lateness{[=, communication = compute](Stream stream) {
                                if (!*communication) *communication = stream;
                                if (stream.handle != (*communication)->handle) sleep(stream);
                              },
                              {},
                              all_but(left_out)};
      };
      if (sharded_difference(asked, 2, late)) return true;
    }
  }
  return false;
}

FsdpCertificateCase with(int slots, int gradient_slots, int parts, int layers_of_a_unit = 1) {
  FsdpCertificateCase asked = three_layers();
  asked.asked.steps = 2;
  asked.asked.parts = parts;
  asked.layers_of_a_unit = layers_of_a_unit;
  asked.options.gather.slots = slots;
  asked.options.scatter.slots = gradient_slots;
  return asked;
}

TEST(FsdpFaults, NoWaitOfAStepCanBeLeftOut) {
  struct Sizes {
    int slots, gradient_slots, parts, layers_of_a_unit, waits;
  };
  // Waits: begin and each gather's; a release where a slot is taken again; each gradient, and the slot of an earlier
  // one; the last bias; the end. (With one slot a gradient would be behind a release that communication waits for.)
  for (const Sizes& sizes : {Sizes{2, 2, 1, 1, 1 + 3 + 1 + 3 + 1 + 1 + 1}, Sizes{2, 1, 1, 1, 1 + 3 + 1 + 3 + 2 + 1 + 1},
                             Sizes{2, 3, 2, 2, 1 + 2 * (2 + 0 + 3) + 1 + 1}}) {
    const FsdpCertificateCase asked = with(sizes.slots, sizes.gradient_slots, sizes.parts, sizes.layers_of_a_unit);
    const std::vector<WaitOf> waits = waits_of(asked);
    ASSERT_EQ(waits.size(), static_cast<std::size_t>(sizes.waits));
    for (int wait = 0; wait < sizes.waits; ++wait) {
      EXPECT_TRUE(shows(asked, wait)) << sizes.slots << " slots, without " << waits[static_cast<std::size_t>(wait)];
    }
    const auto no_more = [&](int) { return test::Lateness{{}, {}, all_but(sizes.waits)}; };
    EXPECT_EQ(sharded_difference(asked, 2, no_more), std::nullopt);
  }
}

}  // namespace
}  // namespace syslab::parallel
