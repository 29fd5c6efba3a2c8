// AMReX: owners of the boxes of a level by a policy of colltune_placement, for MultiFabs and Regrid:
//     DistributionMapping dm = colltune::distribution(ba, costs, "lpt-swap", &present);
// The costs are those of all boxes, as amrex::LoadBalance gathers them; every rank finds the same mapping.
#pragma once
#include <AMReX_BoxArray.H>
#include <AMReX_DistributionMapping.H>
#include <AMReX_ParallelDescriptor.H>
#include <colltune_placement.h>
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace colltune {
inline amrex::DistributionMapping distribution(const amrex::BoxArray &boxes, const amrex::Vector<amrex::Real> &costs,
                                               const char *policy, const amrex::DistributionMapping *present = nullptr) {
    const std::size_t n = boxes.size();
    const auto low = boxes.minimalBox().smallEnd();
    std::vector<colltune_octant> cells(n); // the lower corners, in cells of the finest level of a curve
    for (std::size_t i = 0; i < n; i++) {
        const auto at = boxes[i].smallEnd();
        cells[i] = {std::uint32_t(at[0] - low[0]), std::uint32_t(at[1] - low[1]), std::uint32_t(at[2] - low[2]), 21};
    }
    std::vector<std::uint64_t> keys(n);
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    if (colltune_placement_keys("morton", 3, cells.data(), n, keys.data()))
        throw std::runtime_error(std::string("failed to ") + colltune_placement_message());
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return keys[a] < keys[b]; });
    std::vector<double> along(n);
    std::vector<std::uint32_t> before(n), owners(n);
    for (std::size_t i = 0; i < n; i++) {
        along[i] = costs[order[i]];
        before[i] = present ? present->ProcessorMap()[order[i]] : 0;
    }
    colltune_placement_problem problem = COLLTUNE_PLACEMENT_PROBLEM;
    problem.blocks = n, problem.costs = along.data(), problem.ranks = amrex::ParallelDescriptor::NProcs();
    problem.owners = present ? before.data() : nullptr;
    if (colltune_placement_place(policy, &problem, owners.data(), n, nullptr))
        throw std::runtime_error(std::string("failed to ") + colltune_placement_message());
    amrex::Vector<int> map(n);
    for (std::size_t i = 0; i < n; i++)
        map[order[i]] = int(owners[i]);
    return amrex::DistributionMapping(map);
}
} // namespace colltune
