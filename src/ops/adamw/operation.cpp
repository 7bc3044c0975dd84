#include "ops/adamw/operation.hpp"

#include <memory>

#include "device/fill_random.hpp"
#include "device/memory.hpp"
#include "ops/adamw/oracle.hpp"

namespace syslab::adamw {

Operation operation(const Problem& p, const Options& options, std::int64_t t, const Rung& rung) {
  const auto scalars = std::make_shared<const Scalars>(scalars_of(options, t));
  const auto state = [&p](const char* name) { return TensorSpec{name, p.dtype, {p.elements}}; };
  Operation made;
  made.device = rung.device;
  // Scalars are raw bytes: as many fp64 elements as they have space for.
  made.inputs = {state("p"),
                 state("m"),
                 state("v"),
                 state("g"),
                 {"scalars", DType::f64, {static_cast<std::int64_t>(sizeof(Scalars) / sizeof(double))}}};
  made.outputs = {state("new_p"), state("new_m"), state("new_v")};
  if (p.copy_dtype) made.outputs.push_back({"copy", *p.copy_dtype, {p.elements}});
  // Means of squares: not negative, as random numbers would be, and not 0, which would hide a wrong root.
  made.prepared = {"scalars", "v"};
  made.prepare = [scalars](std::vector<TensorView>& in, device::Stream stream) {
    device::copy(in[4].data, scalars.get(), sizeof(Scalars), stream);
    device::fill_random(in[2], RandomStream::derive(0, "adamw", "v", "squares"), Distribution::uniform, 1.0F, 0,
                        stream);
  };
  made.call = [p, rung](const Inputs& in, const Outputs& out, device::Stream stream) {
    Args args{
        out[0], out[1], out[2], in[3], p.copy_dtype ? out[3] : TensorView{}, static_cast<const Scalars*>(in[4].data)};
    if (rung.op_by_op) {  // steps in place
      for (std::size_t i = 0; i < 3; ++i) {
        device::copy(out[i].data, in[i].data, static_cast<std::size_t>(p.elements) * size_of(p.dtype), stream);
      }
    } else {
      args.old_p = in[0];
      args.old_m = in[1];
      args.old_v = in[2];
    }
    rung.step(p, args, stream);
  };
  made.expect = [p, scalars](const Inputs& in) {
    Oracle exact = oracle(p, in[0], in[1], in[2], in[3], *scalars);
    std::vector<Expected> expected;
    expected.push_back(std::move(exact.p));
    expected.push_back(std::move(exact.m));
    expected.push_back(std::move(exact.v));
    if (p.copy_dtype) expected.push_back(std::move(exact.copy));
    return expected;
  };
  made.flops = flops(p);
  made.bytes = bytes(p);
  return made;
}

}  // namespace syslab::adamw
