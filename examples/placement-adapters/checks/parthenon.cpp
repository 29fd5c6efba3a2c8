// Forty blocks of which some are dear; prints the ranks that they get, on equal and on unequal ranks.
#include "colltune_parthenon.hpp"
#include <cstdio>

int main() {
    std::vector<double> costs;
    for (int i = 0; i < 40; i++)
        costs.push_back(i % 9 == 4 ? 7 : 1 + i % 2);
    std::vector<int> ranks;
    for (const std::vector<double> &speeds : {std::vector<double>{}, std::vector<double>{1, 1, 0.25, 1, 1, 1}}) {
        colltune::AssignBlocks(costs, ranks, "contiguous-optimal", speeds);
        for (int rank : ranks)
            std::printf("%d ", rank);
        std::printf("\n");
    }
    try {
        colltune::AssignBlocks(costs, ranks, "round-robin");
    } catch (const std::runtime_error &error) {
        return std::string(error.what()).find("scatters") == std::string::npos;
    }
    return 2;
}
