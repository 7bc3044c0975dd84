#include "capi/plugin.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "capi/dlpack_tensor.hpp"
#include "capi/library.hpp"
#include "capi/syslab.h"
#include "core/files/hash.hpp"
#include "device/stream.hpp"

namespace syslab::capi {
namespace {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Mask;
using attention::Problem;

struct Functions {
  explicit Functions(Library opened) : library(std::move(opened)) {}

  Library library;
  decltype(&syslab_attention_forward) forward = nullptr;
  decltype(&syslab_attention_backward) backward = nullptr;
  decltype(&syslab_attention_workspace) workspace = nullptr;
};

Functions open_functions(const std::string& name, const std::filesystem::path& path) {
  Functions found{Library(name, path)};
  std::string missing;
  found.library.look_up("syslab_attention_forward", found.forward, missing);
  found.library.look_up("syslab_attention_backward", found.backward, missing);
  found.library.look_up("syslab_attention_workspace", found.workspace, missing);
  decltype(&syslab_last_error) last_error = nullptr;
  found.library.look_up("syslab_last_error", last_error, missing);
  found.library.require(missing);
  return found;
}

syslab_attention_options options_for(const Problem& problem, ops::Workspace workspace) {
  syslab_attention_options options{};
  options.struct_size = sizeof(options);
  options.scale = problem.scale;
  options.causal = problem.mask == Mask::none ? 0 : problem.mask == Mask::top_left ? 1 : 2;
  options.deterministic = problem.repeatable ? 1 : 0;
  options.workspace = workspace.data;
  options.workspace_bytes = workspace.bytes;
  return options;
}

// The hand-out folds heads into the batch: a problem of one head is passed as (B, S, D), which every library must
// accept.
bool drops_heads(const Problem& problem) { return problem.heads_q == 1 && problem.heads_kv == 1; }

// The library's answer for a problem: what it needs, or why it cannot.
struct Answer {
  std::size_t bytes = 0;
  std::optional<std::string> refusal;
};

Answer ask(const Functions& functions, const Problem& problem, Pass pass, device::Kind kind) {
  const device::Place place{kind, 0};
  const bool drop = drops_heads(problem);
  const Shape q_shape{problem.batch, problem.heads_q, problem.seq_q, problem.head_dim};
  const Shape kv_shape{problem.batch, problem.heads_kv, problem.seq_k, problem.head_dim};
  OutgoingTensor q(ConstTensorView(nullptr, problem.dtype, q_shape), drop, place);
  OutgoingTensor k(ConstTensorView(nullptr, problem.dtype, kv_shape), drop, place);
  OutgoingTensor v(ConstTensorView(nullptr, problem.dtype, kv_shape), drop, place);
  const syslab_attention_options options = options_for(problem, {});
  Answer answer;
  const int status =
      functions.workspace(q.get(), k.get(), v.get(), pass == Pass::backward ? 1 : 0, &options, &answer.bytes);
  if (status != SYSLAB_OK)
    answer.refusal = fmt::format("'{}': {}", functions.library.name(), functions.library.error_text());
  return answer;
}

void forward(const Functions& functions, const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
             device::Stream stream) {
  const bool drop = drops_heads(problem);
  const device::Place place = device::place_of(stream);
  OutgoingTensor q(args.q, drop, place), k(args.k, drop, place), v(args.v, drop, place), out(args.out, drop, place),
      lse(args.lse, drop, place);
  const syslab_attention_options options = options_for(problem, workspace);
  functions.library.check_status("syslab_attention_forward", functions.forward(q.get(), k.get(), v.get(), out.get(),
                                                                               lse.get(), &options, stream.handle));
}

void backward(const Functions& functions, const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
              device::Stream stream) {
  const bool drop = drops_heads(problem);
  const device::Place place = device::place_of(stream);
  OutgoingTensor q(args.q, drop, place), k(args.k, drop, place), v(args.v, drop, place), out(args.out, drop, place),
      lse(args.lse, drop, place);
  OutgoingTensor dout(args.dout, drop, place), dq(args.dq, drop, place), dk(args.dk, drop, place),
      dv(args.dv, drop, place);
  const syslab_attention_options options = options_for(problem, workspace);
  functions.library.check_status("syslab_attention_backward",
                                 functions.backward(q.get(), k.get(), v.get(), out.get(), lse.get(), dout.get(),
                                                    dq.get(), dk.get(), dv.get(), &options, stream.handle));
}

}  // namespace

attention::Rung load_attention_plugin(const std::string& name, const std::filesystem::path& library,
                                      device::Kind kind) {
  const auto functions = std::make_shared<const Functions>(open_functions(name, library));
  attention::Rung rung;
  rung.name = name;
  rung.teaches = "somebody's library: " + library.filename().string();
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.language = "C";
  rung.device = kind;
  rung.digest = sha256_hex_of_file(library);
  rung.supports = [functions, kind](const Problem& problem, Pass pass) {
    return ask(*functions, problem, pass, kind).refusal;
  };
  rung.workspace_bytes = [functions, kind](const Problem& problem, Pass pass) {
    return ask(*functions, problem, pass, kind).bytes;
  };
  rung.forward = [functions](const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
                             device::Stream stream) { forward(*functions, problem, args, workspace, stream); };
  rung.backward = [functions](const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                              device::Stream stream) { backward(*functions, problem, args, workspace, stream); };
  return rung;
}

}  // namespace syslab::capi
