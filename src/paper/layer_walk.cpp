#include "paper/layer_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "paper/ring_walk.hpp"

namespace syslab::parallel {
namespace {

constexpr double kPoison = std::numeric_limits<double>::quiet_NaN();  // what a rank does not hold

template <typename T>
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<T> values;

  Matrix(std::size_t r, std::size_t c, T fill = T{}) : rows(r), columns(c), values(r * c, fill) {}
  T& at(std::size_t row, std::size_t column) { return values[row * columns + column]; }
  const T& at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};
using Plain = Matrix<double>;

// A value and its directional derivative.
struct Dual {
  double value = 0, slope = 0;

  friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
};

template <typename T>
T gate(T u) {  // f
  return u * u + u;
}
double gate_slope(double u) { return 2 * u + 1; }

template <typename T>
Matrix<T> transposed(const Matrix<T>& a) {
  Matrix<T> turned(a.columns, a.rows);
  for (std::size_t row = 0; row < a.rows; ++row) {
    for (std::size_t column = 0; column < a.columns; ++column) turned.at(column, row) = a.at(row, column);
  }
  return turned;
}

// a·b; its multiplications and additions are added to `flops`.
template <typename T>
Matrix<T> product(const Matrix<T>& a, const Matrix<T>& b, double& flops) {
  Matrix<T> c(a.rows, b.columns);
  for (std::size_t row = 0; row < a.rows; ++row) {
    for (std::size_t inner = 0; inner < a.columns; ++inner) {
      for (std::size_t column = 0; column < b.columns; ++column) {
        c.at(row, column) = c.at(row, column) + a.at(row, inner) * b.at(inner, column);
        flops += 2;
      }
    }
  }
  return c;
}

template <typename T, typename Function>
Matrix<T> mapped(const Matrix<T>& a, const Matrix<T>& b, Function&& function) {
  Matrix<T> c(a.rows, a.columns);
  std::transform(a.values.begin(), a.values.end(), b.values.begin(), c.values.begin(), function);
  return c;
}

Plain block(const Plain& whole, std::size_t row, std::size_t end_row, std::size_t column, std::size_t end_column) {
  Plain part(end_row - row, end_column - column);
  for (std::size_t i = 0; i < part.rows; ++i) {
    for (std::size_t j = 0; j < part.columns; ++j) part.at(i, j) = whole.at(row + i, column + j);
  }
  return part;
}

void place(const Plain& part, std::size_t row, std::size_t column, Plain& whole) {
  for (std::size_t i = 0; i < part.rows; ++i) {
    for (std::size_t j = 0; j < part.columns; ++j) whole.at(row + i, column + j) = part.at(i, j);
  }
}

enum Tensor { kX, kW1, kW2, kW3, kTensors };
template <typename T>
using Inputs = std::array<Matrix<T>, kTensors>;

template <typename T>
Inputs<T> zero_inputs(const GatedLayer& layer) {
  const auto tokens = static_cast<std::size_t>(layer.tokens), d_model = static_cast<std::size_t>(layer.d_model),
             d_ff = static_cast<std::size_t>(layer.d_ff);
  return {Matrix<T>(tokens, d_model), Matrix<T>(d_model, d_ff), Matrix<T>(d_model, d_ff), Matrix<T>(d_ff, d_model)};
}

void draw(Plain& matrix, std::mt19937& random) {
  for (double& value : matrix.values) value = static_cast<double>(random() % 5) - 2;
}

template <typename T>
struct Forward {
  Matrix<T> x1, x2, z, y;
};

template <typename T>
Forward<T> forward(const Inputs<T>& in, double& flops) {
  Matrix<T> x1 = product(in[kX], in[kW1], flops), x2 = product(in[kX], in[kW2], flops);
  Matrix<T> z = mapped(x1, x2, [](T u, T v) { return gate(u) * v; });
  Matrix<T> y = product(z, in[kW3], flops);
  return {std::move(x1), std::move(x2), std::move(z), std::move(y)};
}

// The equations of the header: gradients of what a rank holds; that of x lacks its all-reduce.
Inputs<double> backward(const Inputs<double>& in, const Forward<double>& kept, const Plain& dy, double& flops) {
  Plain dw3 = product(transposed(kept.z), dy, flops);
  const Plain dz = product(dy, transposed(in[kW3]), flops);
  const Plain dx2 = mapped(dz, kept.x1, [](double d, double u) { return d * gate(u); });
  const Plain dx1 = mapped(mapped(dz, kept.x1, [](double d, double u) { return d * gate_slope(u); }), kept.x2,
                           [](double d, double v) { return d * v; });
  const Plain xt = transposed(in[kX]);
  Plain dw2 = product(xt, dx2, flops), dw1 = product(xt, dx1, flops);
  Plain dx = mapped(product(dx1, transposed(in[kW1]), flops), product(dx2, transposed(in[kW2]), flops),
                    [](double a, double b) { return a + b; });
  return {std::move(dx), std::move(dw1), std::move(dw2), std::move(dw3)};
}

// The ranks of a grid: what they hold and compute. Ranks are numbered along the tensor axis first.
class GridWalk {
 public:
  GridWalk(const GatedLayer& layer, const Grid& grid, Scheme scheme, const Inputs<double>& whole)
      : layer_(layer), grid_(grid), scheme_(scheme), whole_(whole), flops_(static_cast<std::size_t>(grid.ranks())) {
    for (std::int64_t d = 0; d < grid.data; ++d) tensor_rings_.emplace_back(grid.tensor);
    for (std::int64_t t = 0; t < grid.tensor; ++t) data_rings_.emplace_back(grid.data);
  }

  void run_forward() {
    for (std::int64_t rank = 0; rank < grid_.ranks(); ++rank) inputs_.push_back(gathered(rank));
    exchange_weights();
    Buffers sums;
    for (std::int64_t rank = 0; rank < grid_.ranks(); ++rank) {
      kept_.push_back(forward(inputs_[at(rank)], flops_[at(rank)]));
      sums.push_back(kept_.back().y.values);
    }
    all_reduce_over_tensor(sums);
    for (std::int64_t rank = 0; rank < grid_.ranks(); ++rank) kept_[at(rank)].y.values = sums[at(rank)];
  }

  Plain y() const {
    Plain joined(whole_[kX].rows, whole_[kX].columns, kPoison);
    for (std::int64_t d = 0; d < grid_.data; ++d) place(kept_[at(d * grid_.tensor)].y, row(d), 0, joined);
    return joined;
  }

  // Gradients of the whole tensors, assembled from the ranks that hold their parts afterwards.
  Inputs<double> run_backward(const Plain& dy) {
    for (std::int64_t rank = 0; rank < grid_.ranks(); ++rank) inputs_[at(rank)] = gathered(rank);
    exchange_weights();
    std::vector<Inputs<double>> gradients;
    Buffers sums;
    for (std::int64_t rank = 0; rank < grid_.ranks(); ++rank) {
      const std::int64_t d = rank / grid_.tensor;
      const Plain own_dy = block(dy, row(d), row(d + 1), 0, dy.columns);
      gradients.push_back(backward(inputs_[at(rank)], kept_[at(rank)], own_dy, flops_[at(rank)]));
      sums.push_back(gradients.back()[kX].values);
    }
    all_reduce_over_tensor(sums);
    Inputs<double> joined = zero_inputs<double>(layer_);
    for (std::int64_t rank = 0; rank < grid_.ranks(); ++rank) {
      gradients[at(rank)][kX].values = sums[at(rank)];
      place(gradients[at(rank)][kX], row(rank / grid_.tensor), 0, joined[kX]);
    }
    for (const Tensor tensor : {kW1, kW2, kW3}) join_weight_gradient(tensor, gradients, joined[tensor]);
    return joined;
  }

  // Since the last call, of the rank with most of each.
  PassCosts take_counts() {
    const auto most = [](const std::vector<RingWalk>& rings) {
      std::int64_t elements = 0;
      for (const RingWalk& ring : rings) elements = std::max(elements, *std::ranges::max_element(ring.sent_elements()));
      return static_cast<double>(elements);
    };
    const auto bytes = static_cast<double>(layer_.element_bytes);
    const PassCosts counts{*std::ranges::max_element(flops_), bytes * most(data_rings_), bytes * most(tensor_rings_)};
    std::ranges::fill(flops_, 0);
    std::ranges::fill(data_rings_, RingWalk(grid_.data));
    std::ranges::fill(tensor_rings_, RingWalk(grid_.tensor));
    return counts;
  }

 private:
  static std::size_t at(std::int64_t rank) { return static_cast<std::size_t>(rank); }
  std::size_t row(std::int64_t d) const { return data_rings_.front().begin(d, whole_[kX].rows); }
  std::size_t column(std::int64_t t) const { return tensor_rings_.front().begin(t, whole_[kW1].columns); }

  // The tensors that a rank computes with, once the weights are gathered.
  Inputs<double> gathered(std::int64_t rank) const {
    const std::int64_t d = rank / grid_.tensor, t = rank % grid_.tensor;
    const std::size_t width = whole_[kX].columns;
    return {block(whole_[kX], row(d), row(d + 1), 0, width), block(whole_[kW1], 0, width, column(t), column(t + 1)),
            block(whole_[kW2], 0, width, column(t), column(t + 1)),
            block(whole_[kW3], column(t), column(t + 1), 0, width)};
  }

  // Before: a rank of the data axis holds only its own part. After: the whole weights, gathered around the ring.
  void exchange_weights() {
    if (scheme_ == Scheme::data_parallel) return;
    for (std::int64_t t = 0; t < grid_.tensor; ++t) {
      RingWalk& ring = data_rings_[at(t)];
      for (const Tensor tensor : {kW1, kW2, kW3}) {
        Buffers shards;
        for (std::int64_t d = 0; d < grid_.data; ++d) {
          auto values = inputs_[at(d * grid_.tensor + t)][tensor].values;
          for (std::size_t i = 0; i < values.size(); ++i) {
            if (i < ring.begin(d, values.size()) || i >= ring.begin(d + 1, values.size())) values[i] = kPoison;
          }
          shards.push_back(std::move(values));
        }
        ring.all_gather(shards);
        for (std::int64_t d = 0; d < grid_.data; ++d) inputs_[at(d * grid_.tensor + t)][tensor].values = shards[at(d)];
      }
    }
  }

  void all_reduce_over_tensor(Buffers& all) {
    for (std::int64_t d = 0; d < grid_.data; ++d) {
      const auto first = all.begin() + d * grid_.tensor;
      Buffers ring(first, first + grid_.tensor);
      tensor_rings_[at(d)].all_reduce(ring);
      std::move(ring.begin(), ring.end(), first);
    }
  }

  void join_weight_gradient(Tensor tensor, const std::vector<Inputs<double>>& gradients, Plain& joined) {
    for (std::int64_t t = 0; t < grid_.tensor; ++t) {
      RingWalk& ring = data_rings_[at(t)];
      Buffers sums;
      for (std::int64_t d = 0; d < grid_.data; ++d) {
        sums.push_back(gradients[at(d * grid_.tensor + t)][tensor].values);
      }
      Plain part = gradients[at(t)][tensor];
      if (scheme_ == Scheme::data_parallel) {
        ring.all_reduce(sums);
        part.values = sums.front();
        for (const auto& other : sums) {
          if (other != part.values) part.values.assign(part.values.size(), kPoison);
        }
      } else {
        ring.reduce_scatter(sums);
        for (std::int64_t d = 0; d < grid_.data; ++d) {
          const auto from = static_cast<std::ptrdiff_t>(ring.begin(d, part.values.size()));
          const auto end = static_cast<std::ptrdiff_t>(ring.begin(d + 1, part.values.size()));
          std::copy(sums[at(d)].begin() + from, sums[at(d)].begin() + end, part.values.begin() + from);
        }
      }
      place(part, tensor == kW3 ? column(t) : 0, tensor == kW3 ? 0 : column(t), joined);
    }
  }

  GatedLayer layer_;
  Grid grid_;
  Scheme scheme_;
  const Inputs<double>& whole_;
  std::vector<double> flops_;                        // by rank
  std::vector<RingWalk> data_rings_, tensor_rings_;  // by the place on the other axis
  std::vector<Inputs<double>> inputs_;
  std::vector<Forward<double>> kept_;
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// d(y · dy) along `direction` of one tensor, from the forward pass alone.
double slope_along(const GatedLayer& layer, const Inputs<double>& whole, Tensor tensor, const Plain& direction,
                   const Plain& dy) {
  Inputs<Dual> dual = zero_inputs<Dual>(layer);
  for (std::size_t one = 0; one < kTensors; ++one) {
    for (std::size_t i = 0; i < whole[one].values.size(); ++i) {
      dual[one].values[i] = {whole[one].values[i], one == tensor ? direction.values[i] : 0};
    }
  }
  double flops = 0, sum = 0;
  const Matrix<Dual> y = forward(dual, flops).y;
  for (std::size_t i = 0; i < y.values.size(); ++i) sum += y.values[i].slope * dy.values[i];
  return sum;
}

}  // namespace

GatedLayer walkable_layer(const Grid& grid) {
  return {.tokens = grid.ranks(), .d_model = 2 * grid.data, .d_ff = 3 * grid.tensor};
}

LayerWalk walk_layer(const GatedLayer& layer, const Grid& grid, Scheme scheme, std::uint32_t seed) {
  validate(layer);
  if (grid.data < 1 || grid.tensor < 1 || layer.tokens < grid.data || layer.d_ff < grid.tensor ||
      (scheme == Scheme::data_parallel && grid.tensor != 1)) {
    throw Error(ErrorKind::usage, fmt::format("{} tokens and a hidden dimension of {} do not divide over {} × {} ranks",
                                              layer.tokens, layer.d_ff, grid.data, grid.tensor));
  }
  std::mt19937 random(seed);
  Inputs<double> whole = zero_inputs<double>(layer);
  for (Plain& one : whole) draw(one, random);
  Plain dy(whole[kX].rows, whole[kX].columns);
  draw(dy, random);

  LayerWalk walk;
  const auto compare = [&walk](double found, double expected) {
    ++walk.compared;
    if (!(found == expected)) ++walk.wrong;
  };
  GridWalk ranks(layer, grid, scheme, whole);
  ranks.run_forward();
  walk.forward = ranks.take_counts();
  double flops = 0;
  const Plain y = ranks.y(), expected_y = forward(whole, flops).y;
  for (std::size_t i = 0; i < y.values.size(); ++i) compare(y.values[i], expected_y.values[i]);

  const Inputs<double> gradients = ranks.run_backward(dy);
  walk.backward = ranks.take_counts();
  for (const Tensor tensor : {kX, kW1, kW2, kW3}) {
    for (int direction = 0; direction < 4; ++direction) {
      Plain along(whole[tensor].rows, whole[tensor].columns);
      draw(along, random);
      compare(dot(gradients[tensor].values, along.values), slope_along(layer, whole, tensor, along, dy));
    }
  }
  return walk;
}

}  // namespace syslab::parallel
