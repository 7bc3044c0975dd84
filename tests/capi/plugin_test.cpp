#include "capi/plugin.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/files/hash.hpp"
#include "core/random.hpp"
#include "device/buffer.hpp"
#include "ops/attention/dispatch.hpp"

namespace syslab::capi {
namespace {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Mask;
using attention::Problem;
using attention::Rung;

// Set by Meson: where the build put libsyslab.so and the libraries of tests/fixtures/plugins.
std::filesystem::path folder(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::filesystem::path("unset") / variable : std::filesystem::path(value);
}
std::filesystem::path libsyslab() { return folder("SYSLAB_LIBRARY"); }
std::filesystem::path fixture(const std::string& name) { return folder("SYSLAB_PLUGINS") / (name + ".so"); }

struct Owned {
  device::Buffer buffer;
  TensorView view;

  Owned(DType dtype, const Shape& shape) : buffer(TensorSpec{"", dtype, shape}.bytes(), "test") {
    view = TensorView(buffer.data(), dtype, shape);
  }
};

// Random inputs and outputs of a problem, and both passes of a rung on them.
struct Tensors {
  Problem problem;
  Owned q, k, v, out, dout, dq, dk, dv, lse;

  explicit Tensors(const Problem& p)
      : problem(p),
        q(p.dtype, {p.batch, p.heads_q, p.seq_q, p.head_dim}),
        k(p.dtype, {p.batch, p.heads_kv, p.seq_k, p.head_dim}),
        v(p.dtype, k.view.shape),
        out(p.dtype, q.view.shape),
        dout(p.dtype, q.view.shape),
        dq(p.dtype, q.view.shape),
        dk(p.dtype, k.view.shape),
        dv(p.dtype, k.view.shape),
        lse(DType::f32, {p.batch, p.heads_q, p.seq_q}) {
    std::uint64_t key = 1;
    for (Owned* input : {&q, &k, &v, &dout}) fill(input->view, RandomStream(key++), Distribution::normal);
  }

  std::vector<std::vector<double>> run(const Rung& rung) {
    rung.forward(problem, {q.view, k.view, v.view, out.view, lse.view}, {}, {});
    rung.backward(problem, {q.view, k.view, v.view, out.view, lse.view, dout.view, dq.view, dk.view, dv.view}, {}, {});
    return {to_doubles(out.view), to_doubles(lse.view), to_doubles(dq.view), to_doubles(dk.view), to_doubles(dv.view)};
  }
};

std::string message_of(const std::filesystem::path& library) {
  try {
    load_attention_plugin("me", library);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

TEST(Plugin, LibsyslabThroughItsOwnInterfaceGivesTheRungsBits) {
  const Rung plugin = load_attention_plugin("itself", libsyslab());
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
      for (const Problem& shape : {Problem{2, 1, 1, 17, 17, 16}, Problem{1, 1, 1, 65, 33, 7},
                                   Problem{2, 6, 2, 31, 47, 24}, Problem{1, 2, 2, 1, 130, 64}}) {
        Problem problem = shape;
        problem.dtype = dtype;
        problem.mask = mask;
        const Rung& direct = *attention::dispatch(problem, Pass::forward, {}).rung;
        ASSERT_FALSE(plugin.supports(problem, Pass::forward)) << to_string(problem);
        ASSERT_FALSE(plugin.supports(problem, Pass::backward)) << to_string(problem);
        EXPECT_EQ(plugin.workspace_bytes(problem, Pass::backward), direct.workspace_bytes(problem, Pass::backward));
        Tensors ours(problem), theirs(problem);
        ASSERT_EQ(theirs.run(plugin), ours.run(direct)) << to_string(problem);
      }
    }
  }
}

TEST(Plugin, ALibraryInPlainCIsARungLikeAnyOther) {
  const Rung plugin = load_attention_plugin("me", fixture("naive_attention"));
  EXPECT_EQ(plugin.name, "me");
  EXPECT_EQ(plugin.language, "C");
  EXPECT_EQ(plugin.digest, sha256_hex_of_file(fixture("naive_attention")));
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    Problem problem{2, 4, 2, 19, 23, 16};
    problem.mask = mask;
    Tensors ours(problem), theirs(problem);
    const auto expected = ours.run(*attention::dispatch(problem, Pass::forward, {}).rung);
    const auto found = theirs.run(plugin);
    for (std::size_t output = 0; output < found.size(); ++output) {
      for (std::size_t i = 0; i < found[output].size(); ++i) {
        ASSERT_NEAR(found[output][i], expected[output][i], 1e-4) << "output " << output << " element " << i;
      }
    }
  }
}

TEST(Plugin, APlantedFaultShowsOnlyWhereItActs) {
  const Rung faulty = load_attention_plugin("faulty", fixture("faulty_attention"));
  const Rung correct = load_attention_plugin("correct", fixture("naive_attention"));
  Problem problem{1, 1, 1, 16, 16, 8};
  Tensors plain(problem), plain_faulty(problem);
  EXPECT_EQ(plain.run(correct), plain_faulty.run(faulty));
  problem.mask = Mask::top_left;
  Tensors causal(problem), causal_faulty(problem);
  EXPECT_NE(causal.run(correct), causal_faulty.run(faulty));
}

TEST(Plugin, WhatALibraryDoesNotSupportIsSaidInItsOwnWords) {
  const Rung plugin = load_attention_plugin("me", fixture("naive_attention"));
  Problem problem;
  problem.dtype = DType::bf16;
  const std::optional<std::string> reason = plugin.supports(problem, Pass::forward);
  ASSERT_TRUE(reason);
  EXPECT_EQ(*reason, "'me': only fp32 is implemented");
}

TEST(Plugin, AFailingCallIsAnErrorWithTheLibrarysReason) {
  const Rung plugin = load_attention_plugin("me", fixture("failing_attention"));
  Tensors tensors(Problem{});
  try {
    tensors.run(plugin);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::check);
    EXPECT_NE(std::string(error.what()).find("syslab_attention_forward returned 4: the planned failure"),
              std::string::npos)
        << error.what();
  }
  try {
    const BackwardArgs args{tensors.q.view,    tensors.k.view,  tensors.v.view,  tensors.out.view, tensors.lse.view,
                            tensors.dout.view, tensors.dq.view, tensors.dk.view, tensors.dv.view};
    plugin.backward(tensors.problem, args, {}, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::oom);
  }
}

TEST(Plugin, WhatIsNoPluginIsRefusedWithTheReason) {
  EXPECT_NE(message_of("/no/such/libmine.so").find("there is no file '/no/such/libmine.so'"), std::string::npos);
  const std::string text = message_of(folder("SYSLAB_PLUGINS") / ".." / ".." / ".." / "build.ninja");
  EXPECT_NE(text.find("the loader refused"), std::string::npos) << text;
  const std::string missing = message_of(fixture("attention_without_backward"));
  EXPECT_NE(missing.find("does not export syslab_attention_backward;"), std::string::npos) << missing;
  const std::string abi = message_of(fixture("attention_of_another_abi"));
  EXPECT_NE(abi.find("speaks ABI 99, this syslab speaks 1"), std::string::npos) << abi;
}

}  // namespace
}  // namespace syslab::capi
