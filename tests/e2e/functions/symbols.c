/* Functions of C that tests/e2e/test_symbols.py calls as symbols.json says: right, and wrong in a few ways. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static void row_of(const float* x, float* y, int64_t n, float scale) {
  float largest = x[0], sum = 0;
  for (int64_t i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  for (int64_t i = 0; i < n; ++i) sum += y[i] = expf(scale * (x[i] - largest));
  for (int64_t i = 0; i < n; ++i) y[i] /= sum;
}

int softmax(const float* x, float* y, int64_t rows, int64_t n, float scale) {
  for (int64_t row = 0; row < rows; ++row) row_of(x + row * n, y + row * n, n, scale);
  return 0;
}

int backwards(const float* x, float* y, int64_t rows, int64_t n, float scale) {
  for (int64_t row = rows - 1; row >= 0; --row) row_of(x + row * n, y + row * n, n, scale);
  return 0;
}

int half_done(const float* x, float* y, int64_t rows, int64_t n, float scale) { return softmax(x, y, rows / 2, n, scale); }

int too_far(const float* x, float* y, int64_t rows, int64_t n, float scale) {
  const int status = softmax(x, y, rows, n, scale);
  y[rows * n] = 0;
  return status;
}

/* In its first call alone, which nobody times. */
int too_far_once(const float* x, float* y, int64_t rows, int64_t n, float scale) {
  static int calls = 0;
  return calls++ == 0 ? too_far(x, y, rows, n, scale) : softmax(x, y, rows, n, scale);
}

int too_early(const float* x, float* y, int64_t rows, int64_t n, float scale) {
  y[-5] = 0;
  return softmax(x, y, rows, n, scale);
}

int in_place(float* x, float* y, int64_t rows, int64_t n, float scale) {
  const int status = softmax(x, y, rows, n, scale);
  x[0] = 0;
  return status;
}

int small_only(const float* x, float* y, int64_t rows, int64_t n, float scale) {
  return n > 24 ? 7 : softmax(x, y, rows, n, scale);
}

int dies(const float* x, float* y, int64_t rows, int64_t n, float scale) {
  if (n > 24) abort();
  return softmax(x, y, rows, n, scale);
}
