// Compiled once a sanitizer build (tools/sanitize), since reading these costs most files more than their own lines do.
// Nothing of this project is here, and other builds know another one
// (src/core/precompiled.hpp) or none: what a source uses, it includes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
