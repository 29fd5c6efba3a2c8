// Sixty-four boxes of 8^3 cells, the dearest around one corner; prints the owners with and without present ones.
#include "colltune_amrex.hpp"
#include <cstdio>

int main() {
    std::vector<amrex::Box> boxes;
    amrex::Vector<amrex::Real> costs;
    amrex::Vector<int> round;
    for (int i = 0; i < 64; i++) {
        const int x = i % 4, y = i / 4 % 4, z = i / 16;
        // The domain does not begin at 0.
        boxes.push_back({{8 * x - 16, 8 * y - 16, 8 * z - 16}, {8 * x - 9, 8 * y - 9, 8 * z - 9}});
        costs.push_back(x + y + z < 2 ? 40 + i % 5 : 10 + i % 3);
        round.push_back(i % 8);
    }
    const amrex::BoxArray all(boxes);
    const amrex::DistributionMapping present(round);
    for (const char *policy : {"lpt-swap", "contiguous-optimal"})
        for (const auto *known : {(const amrex::DistributionMapping *)nullptr, &present}) {
            const amrex::DistributionMapping found = colltune::distribution(all, costs, policy, known);
            for (int owner : found.ProcessorMap())
                std::printf("%d ", owner);
            std::printf("\n");
        }
    try {
        colltune::distribution(all, costs, "knapsack");
    } catch (const std::runtime_error &error) {
        return std::string(error.what()).find("knapsack") == std::string::npos;
    }
    return 2;
}
