// The operators of torch's dispatcher, called as the dispatcher calls them, in a process whose torch is fake_torch.cpp.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "capi/syslab.h"
#include "tests/capi/c_tensor.hpp"
#include "tests/capi/fake_torch.hpp"

namespace syslab {
namespace {

using capi::CTensor;
using fake_torch::Slot;
using fake_torch::TensorHandle;

class TorchOperators : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    without_torch = syslab_torch_operators();
    torch = dlopen(std::getenv("SYSLAB_TEST_FAKE_TORCH"), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(torch, nullptr) << dlerror();
    registered = syslab_torch_operators();
  }
  void TearDown() override {
    in_torch<fake_torch::Refuse>("fake_torch_refuse")(-1);
    EXPECT_EQ(in_torch<fake_torch::Live>("fake_torch_live")(), 0) << "handles leak, or are given back twice";
  }

  template <typename Function>
  static Function in_torch(const char* name) {
    void* const found = dlsym(torch, name);
    if (found == nullptr) throw std::runtime_error(std::string("the fake torch has no ") + name);
    return reinterpret_cast<Function>(found);
  }

  static TensorHandle empty(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides, std::int32_t dtype) {
    using Make = std::int32_t (*)(std::int64_t, const std::int64_t*, const std::int64_t*, std::int32_t, std::int32_t,
                                  std::int32_t, TensorHandle*);
    TensorHandle made = nullptr;
    in_torch<Make>("aoti_torch_empty_strided")(static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(),
                                               dtype, 0, 0, &made);
    return made;
  }
  static float* data(Slot tensor) {
    void* at = nullptr;
    in_torch<std::int32_t (*)(Slot, void**)>("aoti_torch_get_data_ptr")(tensor, &at);
    return static_cast<float*>(at);
  }
  // With the elements of `from` by index, wherever these strides put them.
  static Slot tensor(const CTensor& from, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides = {}) {
    if (strides.empty()) strides = CTensor::row_major(sizes);
    const auto made = reinterpret_cast<Slot>(empty(sizes, strides, fake_torch::kFloat32));
    const std::vector<double> values = from.values();
    for (std::size_t at = 0; at < values.size(); ++at) {
      std::int64_t rest = static_cast<std::int64_t>(at), place = 0;
      for (std::size_t dim = sizes.size(); dim-- > 0; rest /= sizes[dim]) place += rest % sizes[dim] * strides[dim];
      data(made)[place] = static_cast<float>(values[at]);
    }
    return made;
  }
  static Slot text(const char* one) { return in_torch<fake_torch::MakeText>("fake_torch_text")(one); }
  static void give_back(Slot one) { in_torch<std::int32_t (*)(Slot)>("aoti_torch_delete_tensor_object")(one); }
  static std::vector<double> take(Slot one, std::size_t elements) {
    std::vector<double> values(data(one), data(one) + elements);
    give_back(one);
    return values;
  }
  static Slot optional(TensorHandle held) { return in_torch<fake_torch::MakeOptional>("fake_torch_optional")(held); }
  static void call(const char* operation, std::vector<Slot>& slots, std::uint64_t outputs, const char* device = "CPU") {
    const fake_torch::Kernel kernel = in_torch<fake_torch::KernelOf>("fake_torch_kernel")(device, operation);
    ASSERT_NE(kernel, nullptr);
    kernel(slots.data(), slots.size(), outputs);
  }

  static inline void* torch = nullptr;
  static inline std::string without_torch, registered;
};

// One head of `queries` rows, three-dimensional, through both ways in.
struct Both {
  CTensor q, k, v, out, lse, dout, dq, dk, dv;
  syslab_attention_options options{};

  explicit Both(std::vector<std::int64_t> of_q = {2, 7, 8}, std::vector<std::int64_t> of_k = {2, 9, 8})
      : q(DType::f32, of_q),
        k(DType::f32, of_k),
        v(DType::f32, of_k),
        out(DType::f32, of_q),
        lse(DType::f32, {of_q.begin(), of_q.end() - 1}),
        dout(DType::f32, of_q),
        dq(DType::f32, of_q),
        dk(DType::f32, of_k),
        dv(DType::f32, of_k) {
    q.randomize(1), k.randomize(2), v.randomize(3), dout.randomize(4);
    options.struct_size = sizeof(options);
    options.causal = 1;
    EXPECT_EQ(syslab_attention_forward(q.get(), k.get(), v.get(), out.get(), lse.get(), &options, nullptr), 0);
    EXPECT_EQ(syslab_attention_backward(q.get(), k.get(), v.get(), out.get(), lse.get(), dout.get(), dq.get(), dk.get(),
                                        dv.get(), &options, nullptr),
              0);
  }
};

TEST_F(TorchOperators, WithoutTorchSayWhatTheyNeed) {
  EXPECT_NE(without_torch.find("torch 2.10 or newer"), std::string::npos) << without_torch;
}

TEST_F(TorchOperators, AreRegisteredForTheCpuAndForGpusOnce) {
  EXPECT_EQ(registered, "");
  EXPECT_STREQ(syslab_torch_operators(), "");  // and asking again changes nothing
  const auto kernel_of = in_torch<fake_torch::KernelOf>("fake_torch_kernel");
  for (const char* operation : {"attention_forward", "attention_backward"}) {
    EXPECT_NE(kernel_of("CPU", operation), nullptr);
    EXPECT_EQ(kernel_of("CPU", operation), kernel_of("CUDA", operation));
  }
}

TEST_F(TorchOperators, GiveWhatTheCInterfaceGives) {
  const Both both;
  const std::vector<std::int64_t> of_q{2, 7, 8}, of_k{2, 9, 8};
  std::vector<Slot> slots{tensor(both.q, of_q), tensor(both.k, of_k), tensor(both.v, of_k), 1, text("")};
  call("attention_forward", slots, 2);
  EXPECT_EQ(take(slots[0], 2 * 7 * 8), both.out.values());
  EXPECT_EQ(take(slots[1], 2 * 7), both.lse.values());

  slots = {tensor(both.dout, of_q),
           tensor(both.q, of_q),
           tensor(both.k, of_k),
           tensor(both.v, of_k),
           tensor(both.out, of_q),
           tensor(both.lse, {2, 7}),
           1,
           text("")};
  call("attention_backward", slots, 3);
  EXPECT_EQ(take(slots[0], 2 * 7 * 8), both.dq.values());
  EXPECT_EQ(take(slots[1], 2 * 9 * 8), both.dk.values());
  EXPECT_EQ(take(slots[2], 2 * 9 * 8), both.dv.values());
}

TEST_F(TorchOperators, TakeHeadsAndTheirStridesAndCopyRowsThatAreStrided) {
  const std::vector<std::int64_t> of_q{2, 6, 7, 8}, of_k{2, 3, 9, 8};
  const Both both(of_q, of_k);
  std::vector<Slot> slots{tensor(both.q, of_q, {6 * 7 * 8, 8, 6 * 8, 1}),  // as (B, S, H, D)
                          tensor(both.k, of_k, {3 * 8 * 9, 8 * 9, 1, 9}),  // as (B, H, D, S)
                          tensor(both.v, of_k), 1, text("")};
  call("attention_forward", slots, 2);
  EXPECT_EQ(take(slots[0], 2 * 6 * 7 * 8), both.out.values());
  EXPECT_EQ(take(slots[1], 2 * 6 * 7), both.lse.values());
}

TEST_F(TorchOperators, DoWithoutTheMaskAndByTheImplementationAskedFor) {
  Both both;
  both.options.causal = 0;
  both.options.implementation = "naive";
  ASSERT_EQ(syslab_attention_forward(both.q.get(), both.k.get(), both.v.get(), both.out.get(), both.lse.get(),
                                     &both.options, nullptr),
            0);
  std::vector<Slot> slots{tensor(both.q, {2, 7, 8}), tensor(both.k, {2, 9, 8}), tensor(both.v, {2, 9, 8}), 0,
                          text("naive")};
  call("attention_forward", slots, 2);
  EXPECT_EQ(take(slots[0], 2 * 7 * 8), both.out.values());
  give_back(slots[1]);
}

template <typename Expected, typename Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  return "nothing was refused as expected";
}

TEST_F(TorchOperators, RefuseWithWordsAndKeepNothing) {
  const Both both;
  const auto forward = [&](Slot q, Slot k, Slot v, const char* implementation) {
    std::vector<Slot> slots{q, k, v, 1, text(implementation)};
    return refusal<std::invalid_argument>([&] { call("attention_forward", slots, 2); });
  };
  const auto q = [&] { return tensor(both.q, {2, 7, 8}); };
  const auto k = [&] { return tensor(both.k, {2, 9, 8}); };
  EXPECT_NE(forward(q(), k(), tensor(both.v, {2, 8, 9}), "").find("v has shape"), std::string::npos);
  EXPECT_NE(forward(q(), k(), tensor(both.v, {1, 2, 9, 8}), "").find("v has 4 dimensions where q has 3"),
            std::string::npos);
  EXPECT_NE(
      forward(tensor(both.q, {14, 8}), tensor(both.k, {18, 8}), tensor(both.v, {18, 8}), "").find("q has 2 dimensions"),
      std::string::npos);
  EXPECT_NE(forward(q(), k(), k(), "flash_nothing").find("flash_nothing"), std::string::npos);
  const auto doubles = reinterpret_cast<Slot>(empty({2, 7, 8}, CTensor::row_major({2, 7, 8}), fake_torch::kFloat64));
  EXPECT_NE(forward(doubles, k(), k(), "").find("q is not of float32"), std::string::npos);
}

constexpr const char* kNode = "_scaled_dot_product_flash_attention_for_cpu";
constexpr const char* kNodeBackward = "_scaled_dot_product_flash_attention_for_cpu_backward";

TEST_F(TorchOperators, OfANodeOfTorchsGiveTheSame) {
  const Both both;
  const std::vector<std::int64_t> of_q{2, 7, 8}, of_k{2, 9, 8};
  EXPECT_EQ(in_torch<fake_torch::KernelOf>("fake_torch_kernel")("aten CPU", kNode), nullptr) << "torch has its own";
  // dropout, is_causal, mask and scale; the node passes a mask that is none to the backward operator.
  std::vector<Slot> slots;
  for (const double none : {0.0, -0.0}) {
    slots = {tensor(both.q, of_q), tensor(both.k, of_k), tensor(both.v, of_k), std::bit_cast<Slot>(none), 1, 0, 0};
    call(kNode, slots, 2, "aten CUDA");
    EXPECT_EQ(take(slots[0], 2 * 7 * 8), both.out.values());
    EXPECT_EQ(take(slots[1], 2 * 7), both.lse.values());
  }
  for (const bool holds : {false, true}) {
    slots = {tensor(both.dout, of_q),
             tensor(both.q, of_q),
             tensor(both.k, of_k),
             tensor(both.v, of_k),
             tensor(both.out, of_q),
             tensor(both.lse, {2, 7}),
             0,
             1,
             holds ? optional(nullptr) : 0,
             0};
    call(kNodeBackward, slots, 3, "aten CUDA");
    EXPECT_EQ(take(slots[0], 2 * 7 * 8), both.dq.values());
    EXPECT_EQ(take(slots[1], 2 * 9 * 8), both.dk.values());
    EXPECT_EQ(take(slots[2], 2 * 9 * 8), both.dv.values());
  }
}

TEST_F(TorchOperators, OfANodeOfTorchsRefuseWhatItCouldBeAsked) {
  const Both both;
  const auto asked = [&](Slot dropout, Slot mask, Slot scale) {
    std::vector<Slot> slots{
        tensor(both.q, {2, 7, 8}), tensor(both.k, {2, 9, 8}), tensor(both.v, {2, 9, 8}), dropout, 1, mask, scale};
    return refusal<std::invalid_argument>([&] { call(kNode, slots, 2, "aten CUDA"); });
  };
  double half = 0.5;
  Slot dropout = 0;
  std::memcpy(&dropout, &half, sizeof(dropout));
  EXPECT_NE(asked(dropout, 0, 0).find("takes no dropout"), std::string::npos);
  EXPECT_NE(asked(0, 0, optional(reinterpret_cast<TensorHandle>(dropout))).find("no scale"), std::string::npos);
  EXPECT_NE(asked(0, optional(nullptr), 0).find("no mask"), std::string::npos);
}

TEST_F(TorchOperators, PassOnThatTorchHasNoMemory) {
  const Both both;
  for (int allocation : {0, 1}) {  // of the output, of its log-sum-exps
    std::vector<Slot> slots{tensor(both.q, {2, 7, 8}), tensor(both.k, {2, 9, 8}), tensor(both.v, {2, 9, 8}), 1,
                            text("")};
    in_torch<fake_torch::Refuse>("fake_torch_refuse")(allocation);
    EXPECT_NE(refusal<std::runtime_error>([&] { call("attention_forward", slots, 2); }).find("torch could not make"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace syslab
