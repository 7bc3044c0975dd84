#include "model/linear.hpp"

#include "device/cuda/cublas.hpp"

namespace syslab::model {
namespace {

// A factor of a product, cast to the dtype of products.
class Factor {
 public:
  Factor(const PassContext& pass, const ConstTensorView& matrix) : view_(matrix) {
    if (matrix.dtype == pass.dtypes.product) return;
    cast_ = pass.tensor("cast", pass.dtypes.product, matrix.shape);
    pass.cast(matrix, cast_);
    view_ = cast_;
  }
  device::BasicGemmMatrix<const void*> matrix() const { return {view_.data, view_.dtype, view_.stride(0)}; }

 private:
  Tensor cast_;
  ConstTensorView view_;
};

device::BasicGemmMatrix<void*> result(const TensorView& matrix) {
  return {matrix.data, matrix.dtype, matrix.stride(0)};
}

}  // namespace

void linear(const PassContext& pass, const ConstTensorView& x, const ConstTensorView& w, const TensorView& y) {
  const Factor left(pass, x), right(pass, w);
  device::gemm({.m = x.size(0),
                .n = w.size(0),
                .k = w.size(1),
                .transpose_b = true,
                .a = left.matrix(),
                .b = right.matrix(),
                .c = result(y),
                .math = pass.dtypes.math},
               pass.stream);
}

void linear_input_gradient(const PassContext& pass, const ConstTensorView& dy, const ConstTensorView& w,
                           const TensorView& dx, bool add) {
  const Factor left(pass, dy), right(pass, w);
  device::gemm({.m = dy.size(0),
                .n = w.size(1),
                .k = w.size(0),
                .beta = add ? 1.0 : 0.0,
                .a = left.matrix(),
                .b = right.matrix(),
                .c = result(dx),
                .math = pass.dtypes.math},
               pass.stream);
}

void linear_weight_gradient(const PassContext& pass, const ConstTensorView& dy, const ConstTensorView& x,
                            const GradientPlace& dw) {
  const Factor left(pass, dy), right(pass, x);
  device::gemm({.m = dw.view.size(0),
                .n = dw.view.size(1),
                .k = dy.size(0),
                .transpose_a = true,
                .beta = dw.add ? 1.0 : 0.0,
                .a = left.matrix(),
                .b = right.matrix(),
                .c = result(dw.view),
                .math = pass.dtypes.math},
               pass.stream);
}

namespace {

// One of `parts` equal groups of neighbouring rows.
template <typename View>
View part_of(const View& matrix, int part, int parts) {
  const std::int64_t count = matrix.size(0) / parts;
  return rows(matrix, part * count, count);
}

}  // namespace

void linear_joined(const PassContext& pass, const ConstTensorView& x, const ConstTensorView& w, const TensorView& y,
                   int parts) {
  if (pass.kernels.joined) return linear(pass, x, w, y);
  const std::int64_t width = y.size(1) / parts;
  for (int part = 0; part < parts; ++part) {
    linear(pass, x, part_of(w, part, parts), columns(y, part * width, width));
  }
}

void linear_joined_backward(const PassContext& pass, const ConstTensorView& dy, const ConstTensorView& x,
                            const ConstTensorView& w, const TensorView& dx, const GradientPlace& dw, int parts) {
  if (pass.kernels.joined) parts = 1;
  const std::int64_t width = dy.size(1) / parts;
  for (int part = 0; part < parts; ++part) {
    const ConstTensorView mine = columns(dy, part * width, width);
    linear_weight_gradient(pass, mine, x, {part_of(dw.view, part, parts), dw.add});
    linear_input_gradient(pass, mine, part_of(w, part, parts), dx, part > 0);
  }
}

}  // namespace syslab::model
