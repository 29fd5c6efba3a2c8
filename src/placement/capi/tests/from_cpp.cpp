// Uses the header from C++ with its containers; prints the owners of the policies that are named, by hash.
#include "colltune_placement.h"

#include <cinttypes>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Mesh {
    std::vector<double> costs{3, 1, 1, 1, 2, 2, 4, 2};
    std::vector<colltune_octant> octants;
    std::vector<std::uint64_t> offsets{0, 1, 2, 3, 4, 5, 6, 7, 7}, bytes = std::vector<std::uint64_t>(7, 9);
    std::vector<std::uint32_t> neighbours{1, 2, 3, 4, 5, 6, 7}, before = std::vector<std::uint32_t>(8, 0);
    colltune_machine machine{{1e-3, 0}, {1e-2, 0}};

    Mesh() {
        for (std::uint32_t i = 0; i < 8; i++)
            octants.push_back({(i & 1) << 20, (i >> 1 & 1) << 20, (i >> 2) << 20, 1});
    }

    colltune_placement_problem problem() const {
        colltune_placement_problem problem = COLLTUNE_PLACEMENT_PROBLEM;
        problem.blocks = costs.size();
        problem.costs = costs.data();
        problem.ranks = 4;
        problem.ranks_per_node = 2;
        problem.octants = octants.data();
        problem.dimensions = 3;
        problem.graph_offsets = offsets.data();
        problem.graph_neighbours = neighbours.data();
        problem.graph_bytes = bytes.data();
        problem.graph_edges = bytes.size();
        problem.owners = before.data();
        problem.bytes_per_block = 100;
        problem.machine = &machine;
        return problem;
    }
};

std::vector<std::uint32_t> place(const std::string &policy, const Mesh &mesh) {
    const colltune_placement_problem problem = mesh.problem();
    std::vector<std::uint32_t> owners(mesh.costs.size());
    if (colltune_placement_place(policy.c_str(), &problem, owners.data(), owners.size(), nullptr))
        throw std::runtime_error(std::string("failed to ") + colltune_placement_message());
    return owners;
}

} // namespace

int main() {
    Mesh mesh;
    try {
        place("no such policy", mesh);
        return 1;
    } catch (const std::runtime_error &error) {
        if (std::string(error.what()).find("no such policy") == std::string::npos)
            return 2;
    }
    // Each thread has its own message.
    std::string elsewhere = "unset";
    std::thread([&] { elsewhere = colltune_placement_message(); }).join();
    if (!elsewhere.empty())
        return 3;
    for (std::string policy; std::getline(std::cin, policy);) {
        const auto owners = place(policy, mesh);
        std::printf("%s %016" PRIx64 "\n", policy.c_str(), colltune_placement_hash(owners.data(), owners.size()));
    }
    return 0;
}
