// Two of Slurm's notations: lists of hosts and of tasks on each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syslab::comm {

std::string slurm_first_host(std::string_view node_list);  // "gpu[07-09,12],login1" → "gpu07"
std::vector<int> slurm_tasks_per_node(std::string_view);   // "2(x3),1" → 2 2 2 1; empty when it is not that

}  // namespace syslab::comm
