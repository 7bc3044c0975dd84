// Ranks of the backend nccl over the fake library (fake_nccl.cpp), as threads.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comm/nccl/communicator.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"
#include "tests/comm/fake_nccl.hpp"
#include "tests/comm/ranks_fixture.hpp"

namespace syslab::comm {

using namespace std::chrono_literals;  // NOLINT: of tests

class FakeNccl : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::unsetenv("NCCL_NVLS_ENABLE");  // before the library is opened
    entry<decltype(fake_enqueue_by)>("fake_enqueue_by")([](void* stream, std::function<void()> work) {
      device::enqueue({device::Kind::cpu, stream}, std::move(work));
    });
  }
  void SetUp() override { ::unsetenv("SYSLAB_FAKE_NCCL"); }
  void TearDown() override { ::unsetenv("SYSLAB_FAKE_NCCL"); }

  // A function of the library, which stays open.
  template <typename Function>
  static Function* entry(const char* name) {
    const char* const file = std::getenv("SYSLAB_TEST_FAKE_NCCL");  // as meson.build names it
    void* const library = file == nullptr ? nullptr : ::dlopen(file, RTLD_NOW);
    if (library == nullptr)
      throw std::runtime_error(file == nullptr ? "SYSLAB_TEST_FAKE_NCCL is not set" : ::dlerror());
    return reinterpret_cast<Function*>(::dlsym(library, name));
  }

  static NcclOptions fake() {
    NcclOptions options;
    options.library = std::getenv("SYSLAB_TEST_FAKE_NCCL");
    options.place = {};
    options.budget = 500ms;
    options.exit = [] { ADD_FAILURE() << "a process would have ended"; };
    return options;
  }

  // What each rank threw. A rank that throws ends the others, as the control plane would.
  std::vector<std::string> run(int size, const CommunicatorOptions& options,
                               const std::function<void(Communicator&, device::Stream)>& body,
                               const NcclOptions& nccl = fake()) {
    const FreePort port;
    return as_threads(size, [&](int rank) {
      const std::shared_ptr<Rendezvous> rendezvous =
          open_rendezvous({.address = port.address("job"), .rank = rank, .size = size, .limit = 20s});
      const device::OwnedStream stream = device::OwnedStream::queue();
      const auto ranks = make_nccl(rendezvous, options, nccl);
      body(*ranks, stream);
    });
  }
};

inline TensorView floats(std::vector<float>& values) {
  return {values.data(), DType::f32, {static_cast<std::int64_t>(values.size())}};
}

}  // namespace syslab::comm
