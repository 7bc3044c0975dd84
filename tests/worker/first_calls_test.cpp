// First calls of a kind, which may compile, have a limit of their own.
#include "worker/judged/first_calls.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"

namespace syslab::worker {
namespace {

class Slow : public CallChannel, public DeclaresDomain {
 public:
  Nanoseconds call(std::string_view, std::span<const NamedInput>, std::span<const NamedOutput>,
                   const Params&) override {
    std::this_thread::sleep_for(takes);
    if (fails) throw Error(ErrorKind::check, "it is wrong");
    return Nanoseconds(7);
  }
  const Json& declared_domain() const override { return domain; }

  std::chrono::milliseconds takes{0};
  bool fails = false;
  Json domain{{"max_seq", 64}};
};

struct Asked {
  explicit Asked(CallKinds by = CallKinds::by_shape) : kinds(by) {}

  std::shared_ptr<Slow> slow = std::make_shared<Slow>();
  FirstCallsSoFar so_far;
  int begun = 0;
  CallKinds kinds;
  FirstCalls calls{slow, kinds, so_far, [this] { ++begun; }};

  void call(std::int64_t rows, std::int64_t width, bool causal = false, DType dtype = DType::f32) {
    const std::array inputs{NamedInput{"q", ConstTensorView(nullptr, dtype, {1, rows, width})}};
    Params options;
    options.set("causal", causal);
    EXPECT_EQ(calls.call("attention_forward", inputs, {}, options), Nanoseconds(7));
  }
};

TEST(FirstCalls, AreThoseOfAWidthADtypeAnOptionAndWhatDividesTheLength) {
  Asked asked;
  asked.call(64, 32);
  asked.call(128, 32);
  EXPECT_EQ(asked.begun, 1) << "another length that 16 divides";
  asked.call(65, 32);
  asked.call(1, 32);
  asked.call(64, 16);
  asked.call(64, 16, true);
  asked.call(64, 16, true, DType::bf16);
  EXPECT_EQ(asked.begun, 6);
  asked.call(67, 32);
  asked.call(64, 16, true, DType::bf16);
  EXPECT_EQ(asked.begun, 6);
  EXPECT_EQ(asked.so_far.spent, Nanoseconds{}) << "none took long";
  EXPECT_EQ(asked.calls.declared_domain(), asked.slow->domain);
}

TEST(FirstCalls, OnACpuAreThoseOfAFunction) {
  Asked asked(CallKinds::by_function);
  asked.call(64, 32);
  asked.call(65, 64, true, DType::bf16);
  EXPECT_EQ(asked.begun, 1);
}

TEST(FirstCalls, ThatTakeLongAreCountedUpToALimit) {
  Asked asked;
  asked.slow->takes = kLongFirstCall;
  asked.call(64, 32);
  EXPECT_GE(asked.so_far.spent, kLongFirstCall);
  const Nanoseconds once = asked.so_far.spent;
  asked.call(64, 32);
  EXPECT_EQ(asked.so_far.spent, once) << "the second of its kind is a law's own";
  asked.slow->fails = true;
  EXPECT_THROW(asked.call(64, 64), Error);
  EXPECT_GT(asked.so_far.spent, once) << "it compiled before it failed";
  asked.slow->fails = false;
  asked.so_far.spent = kMostFirstCalls - std::chrono::milliseconds(1);
  asked.call(64, 128);
  EXPECT_EQ(asked.so_far.spent, kMostFirstCalls);
  const int begun = asked.begun;
  asked.call(64, 256);
  EXPECT_EQ(asked.begun, begun) << "none is left";
  EXPECT_EQ(asked.so_far.spent, kMostFirstCalls);
}

}  // namespace
}  // namespace syslab::worker
