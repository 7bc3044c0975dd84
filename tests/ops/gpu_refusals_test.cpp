// What rungs on a GPU refuse before they do anything, so that it is seen without a GPU as well: a stream of the CPU,
// and too little of the memory that lives from a forward to a backward pass.
#include "ops/attention/autograd.hpp"
#include "ops/copy/copy.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/weighted_sum/weighted_sum.hpp"
#include "tests/ops/gpu_attention_fixture.hpp"
#include "tests/ops/weighted_sum_fixture.hpp"

namespace syslab {
namespace {

constexpr device::Stream kOfTheCpu{};

template <typename Call>
void expect_usage_error(const std::string& rung, const std::string& text, const Call& call) {
  try {
    call();
    ADD_FAILURE() << rung << ": no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    const std::string message = error.what();
    EXPECT_NE(message.find(rung), std::string::npos) << message;
    EXPECT_NE(message.find(text), std::string::npos) << message;
  }
}
template <typename Call>
void expect_refused(const std::string& rung, const Call& call) {
  expect_usage_error(rung, "the stream it was given is the CPU's", call);
}

template <typename Rung>
bool is_there(const Rung& rung) {
  return rung.device == device::Kind::cuda && rung.unavailable.empty();
}

TEST(CudaRungs, OfAttentionRefuseTheCpusStream) {
  int rungs = 0;
  for (const attention::Rung& rung : attention::ladder()) {
    if (!is_there(rung)) continue;
    ++rungs;
    attention::Tensors tensors({.seq_q = 64, .seq_k = 64, .head_dim = 64, .dtype = rung.dtypes.front()}, 1);
    const std::string name = rung.name.substr(0, rung.name.find("_deterministic"));  // both rungs go forward alike
    expect_refused(name, [&] { rung.forward(tensors.problem(), tensors.forward(), {}, kOfTheCpu); });
    if (rung.supports(tensors.problem(), Pass::backward)) continue;  // it has none
    expect_refused(rung.name, [&] { rung.backward(tensors.problem(), tensors.backward(), {}, kOfTheCpu); });
  }
  EXPECT_GT(rungs, 0);
}

TEST(CudaRungs, OfOtherOperatorsRefuseTheCpusStream) {
  int sums = 0, products = 0, copies = 0;
  for (const weighted_sum::Rung& rung : weighted_sum::ladder()) {
    if (!is_there(rung)) continue;
    ++sums;
    weighted_sum::Instance i({.rows = 4, .dim = 8}, 1);
    expect_refused(rung.name, [&] { rung.forward(i.problem, {i.x.view(), i.w.view(), i.y.view()}, {}, kOfTheCpu); });
    expect_refused(rung.name, [&] {
      rung.backward(i.problem, {i.x.view(), i.w.view(), i.dy.view(), i.dx.view(), i.dw.view()}, {}, kOfTheCpu);
    });
  }
  std::vector<float> a(16), b(16), c(16);
  const auto matrix = [](std::vector<float>& values) { return TensorView(values.data(), DType::f32, {4, 4}); };
  for (const gemm::Rung& rung : gemm::ladder()) {
    if (!is_there(rung)) continue;
    ++products;
    expect_refused(rung.name, [&] {
      rung.run({4, 4, 4, DType::f32}, {matrix(a), matrix(b), matrix(c)}, {}, kOfTheCpu);
    });
  }
  for (const copy::Rung& rung : copy::ladder()) {
    if (!is_there(rung)) continue;
    ++copies;
    expect_refused(rung.name, [&] {
      rung.run({16, DType::f32}, {ConstTensorView(a.data(), DType::f32, {16}), TensorView(b.data(), DType::f32, {16})},
               kOfTheCpu);
    });
  }
  for (const int rungs : {sums, products, copies}) EXPECT_GT(rungs, 0);
}

TEST(CudaRungs, ThatHoldScoresRefuseMoreRowsThanAGridHas) {
  for (const char* name : {"naive_cuda", "naive_cuda_literal"}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      attention::Problem p{.batch = 1 << 11, .heads_q = 1 << 10, .heads_kv = 1 << 10, .seq_q = 1 << 10, .seq_k = 1};
      const auto reason = attention::find_rung(name).supports(p, pass);
      ASSERT_TRUE(reason) << "2^31 rows";
      EXPECT_NE(reason->find("takes at most 2147483647 queries in all heads and batches"), std::string::npos)
          << *reason;
      p.seq_q -= 1;
      EXPECT_EQ(attention::find_rung(name).supports(p, pass), std::nullopt);
      p.seq_q = 1;
      p.seq_k = std::int64_t{1} << 31;
      EXPECT_TRUE(attention::find_rung(name).supports(p, pass));
    }
  }
}

class SavedMemory : public device::GpuTest {};

TEST_F(SavedMemory, ThatIsTooSmallIsRefused) {
  for (const char* name : {"naive_cuda", "naive_cuda_literal"}) {
    const attention::AutogradRung& rung = attention::find_autograd_rung(name);
    attention::Tensors tensors({.seq_q = 64, .seq_k = 64, .head_dim = 64, .dtype = DType::bf16}, 1);
    const attention::ForwardThere forward(tensors, stream);
    const attention::BackwardThere backward(tensors, stream);
    const std::size_t needed = rung.saved_bytes(tensors.problem());
    const device::Buffer memory(needed + 16, "test", stream);
    const ops::Workspace lents[] = {{}, {memory.data(), needed - 1}, {memory.as<char>() + 2, needed}};
    for (const ops::Workspace& saved : lents) {
      expect_usage_error(name, "`saved` is",
                         [&] { rung.forward(tensors.problem(), forward.args(), saved, {}, stream); });
      expect_usage_error(name, "`saved` is",
                         [&] { rung.backward(tensors.problem(), backward.args(), saved, {}, stream); });
    }
  }
}

}  // namespace
}  // namespace syslab
