// Compiled once per library (cpp_pch), since parsing these costs most files more than their own lines. No header of
// this project is here, and files still include what they use: -Db_pch=false builds without it. (No #pragma once:
// compilers warn about one in the main file.)
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
