#include "worker/cases/calls_beside.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"

namespace syslab::worker {
namespace {

constexpr std::int64_t kNumbers = 5;

float* floats(void* data) { return static_cast<float*>(data); }

// What it is asked for, in order: the first element of each call's input.
struct Heard {
  std::vector<float> first;
  int opened = 0;
  bool fails = false;
};

class Copies : public Callee {
 public:
  explicit Copies(Heard& heard) : heard_(heard) { ++heard_.opened; }
  Json domain() const override { return Json::object(); }
  std::function<void()> prepare(std::string_view, std::span<const NamedInput> inputs,
                                std::span<const NamedOutput> outputs, const Params&) override {
    return [this, from = static_cast<const float*>(inputs[0].view.data), to = floats(outputs[0].view.data)] {
      if (heard_.fails) throw Error(ErrorKind::check, "no");
      heard_.first.push_back(*from);
      std::copy(from, from + kNumbers, to);
    };
  }

 private:
  Heard& heard_;
};

class CallsBesideTest : public testing::Test {
 protected:
  CallsBesideTest() {
    request.inputs = {{.name = "x", .shape = {kNumbers}, .strides = {1}}};
    request.outputs = {{.name = "y", .shape = {kNumbers}, .strides = {1}, .offset = kNumbers * sizeof(float)}};
    request.memory_bytes = 2 * kNumbers * sizeof(float);
  }
  void ask(int streams) {
    beside.queue_with(request, reinterpret_cast<const std::byte*>(tensors.data()), streams, {},
                      [this] { heard.first.push_back(0); });
  }

  Heard heard;
  OpenCallee open = [this](device::Stream) { return std::make_unique<Copies>(heard); };
  CallsBeside beside{open};
  CallRequest request;
  std::vector<float> tensors{1, 2, 3, 4, 5, -1, -1, -1, -1, -1};
};

TEST_F(CallsBesideTest, OthersOfOtherValuesRunBeforeBetweenAndBehind) {
  ask(3);
  EXPECT_EQ(heard.first, (std::vector<float>{5, 5, 0, 5, 5, 0, 5, 5, 0, 5, 5, 0, 5, 5}));
  EXPECT_EQ(tensors, (std::vector<float>{1, 2, 3, 4, 5, -1, -1, -1, -1, -1}));  // the host's stay as they are
}

TEST_F(CallsBesideTest, WhatIsOpenedOnceServesTheNextCall) {
  ask(3);
  tensors[4] = 7;
  heard.first.clear();
  ask(3);
  EXPECT_EQ(heard.opened, 2);
  EXPECT_EQ(heard.first.front(), 7);
}

TEST_F(CallsBesideTest, WhatACallThrowsIsThrownAndTheNextIsAsEver) {
  heard.fails = true;
  EXPECT_THROW(ask(2), Error);
  heard.fails = false;
  ask(2);
  EXPECT_EQ(std::ranges::count(heard.first, 5), 5);
}

}  // namespace
}  // namespace syslab::worker
