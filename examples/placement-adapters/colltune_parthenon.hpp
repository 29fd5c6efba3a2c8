// Parthenon: in place of AssignBlocks(costlist, ranklist) in Mesh::CalculateLoadBalance:
//     colltune::AssignBlocks(costlist, ranklist, "contiguous-optimal");
// Block numbers follow the curve, and a rank has an interval of them, so a policy that scatters blocks is refused.
#pragma once
#include <colltune_placement.h>
#include <globals.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace colltune {
inline void AssignBlocks(const std::vector<double> &costlist, std::vector<int> &ranklist,
                         const char *policy = "contiguous-optimal", const std::vector<double> &speeds = {}) {
    const auto fail = [](const char *why) { throw std::runtime_error(std::string("failed to ") + why); };
    colltune_placement_problem problem = COLLTUNE_PLACEMENT_PROBLEM;
    problem.blocks = costlist.size(), problem.costs = costlist.data();
    problem.ranks = parthenon::Globals::nranks;
    problem.matching = 1; // ranks keep their order
    if (!speeds.empty() && speeds.size() != problem.ranks)
        fail("use the speeds: there is not one for each rank");
    problem.speeds = speeds.empty() ? nullptr : speeds.data();
    colltune_placement_certificate found = COLLTUNE_PLACEMENT_CERTIFICATE;
    std::vector<std::uint32_t> owners(costlist.size());
    if (colltune_placement_place(policy, &problem, owners.data(), owners.size(), &found))
        fail(colltune_placement_message());
    if (found.contiguity == 0)
        fail("use the policy: Parthenon's ranks have intervals of blocks, and it scatters them");
    ranklist.assign(owners.begin(), owners.end());
}
} // namespace colltune
