// Doubles, each as "%a" and as syslab's JSON writes it, for tests/claim_seal_test.py.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "core/text/json_text.hpp"

int main() {
  const auto print = [](double value) {
    std::printf("%a %s\n", value, syslab::json_text(syslab::Json(value)).c_str());
  };
  for (const double value : {0.0, -0.0, 1.0, 700.0, 0.1, 1e14, 1e15, 1e16, 123456789012345680.0, 1e-4, 1e-5, 5e-324,
                             2.2250738585072014e-308, 1.7976931348623157e308, 9007199254740993.0, 4503599627370496.0}) {
    print(value);
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    if (const double any = std::bit_cast<double>(random()); std::isfinite(any)) print(any);
    print(std::uniform_real_distribution<double>(-3, 3)(random));             // ratios
    print(std::exp(std::uniform_real_distribution<double>(-14, 3)(random)));  // times
  }
}
