//! The collectives that pass through, by all their names: nonblocking, persistent and on the neighbours of a topology.
//!
//! Each function has a name in C, and one for large counts, and two names in Fortran. What stands for the types of
//! arguments, and what a message is, says the file that defines the functions.

/// Has those with buffers defined.
macro_rules! passing_with_buffers {
    ($define:ident) => {
        $define!(Allreduce {
            nonblocking: MPI_Iallreduce MPI_Iallreduce_c, mpi_iallreduce_ mpi_iallreduce_f08_;
            persistent: MPI_Allreduce_init MPI_Allreduce_init_c, mpi_allreduce_init_ mpi_allreduce_init_f08_;
            extension: MPIX_Allreduce_init, mpix_allreduce_init_ mpix_allreduce_init_f08_;
        } (send: In, recv: Out, count: Elements, datatype: Type, op: Operation)
            elements(count, datatype));
        $define!(Reduce {
            nonblocking: MPI_Ireduce MPI_Ireduce_c, mpi_ireduce_ mpi_ireduce_f08_;
            persistent: MPI_Reduce_init MPI_Reduce_init_c, mpi_reduce_init_ mpi_reduce_init_f08_;
            extension: MPIX_Reduce_init, mpix_reduce_init_ mpix_reduce_init_f08_;
        } (send: In, recv: Out, count: Elements, datatype: Type, op: Operation, root: Root)
            elements(count, datatype));
        $define!(Scan {
            nonblocking: MPI_Iscan MPI_Iscan_c, mpi_iscan_ mpi_iscan_f08_;
            persistent: MPI_Scan_init MPI_Scan_init_c, mpi_scan_init_ mpi_scan_init_f08_;
            extension: MPIX_Scan_init, mpix_scan_init_ mpix_scan_init_f08_;
        } (send: In, recv: Out, count: Elements, datatype: Type, op: Operation)
            elements(count, datatype));
        $define!(Exscan {
            nonblocking: MPI_Iexscan MPI_Iexscan_c, mpi_iexscan_ mpi_iexscan_f08_;
            persistent: MPI_Exscan_init MPI_Exscan_init_c, mpi_exscan_init_ mpi_exscan_init_f08_;
            extension: MPIX_Exscan_init, mpix_exscan_init_ mpix_exscan_init_f08_;
        } (send: In, recv: Out, count: Elements, datatype: Type, op: Operation)
            elements(count, datatype));
        $define!(ReduceScatterBlock {
            nonblocking: MPI_Ireduce_scatter_block MPI_Ireduce_scatter_block_c,
                mpi_ireduce_scatter_block_ mpi_ireduce_scatter_block_f08_;
            persistent: MPI_Reduce_scatter_block_init MPI_Reduce_scatter_block_init_c,
                mpi_reduce_scatter_block_init_ mpi_reduce_scatter_block_init_f08_;
            extension: MPIX_Reduce_scatter_block_init,
                mpix_reduce_scatter_block_init_ mpix_reduce_scatter_block_init_f08_;
        } (send: In, recv: Out, count: Elements, datatype: Type, op: Operation)
            each_rank(count, datatype));
        $define!(ReduceScatter {
            nonblocking: MPI_Ireduce_scatter MPI_Ireduce_scatter_c,
                mpi_ireduce_scatter_ mpi_ireduce_scatter_f08_;
            persistent: MPI_Reduce_scatter_init MPI_Reduce_scatter_init_c,
                mpi_reduce_scatter_init_ mpi_reduce_scatter_init_f08_;
            extension: MPIX_Reduce_scatter_init, mpix_reduce_scatter_init_ mpix_reduce_scatter_init_f08_;
        } (send: In, recv: Out, counts: Counts, datatype: Type, op: Operation)
            sum(counts, datatype));
        $define!(Bcast {
            nonblocking: MPI_Ibcast MPI_Ibcast_c, mpi_ibcast_ mpi_ibcast_f08_;
            persistent: MPI_Bcast_init MPI_Bcast_init_c, mpi_bcast_init_ mpi_bcast_init_f08_;
            extension: MPIX_Bcast_init, mpix_bcast_init_ mpix_bcast_init_f08_;
        } (buffer: Out, count: Elements, datatype: Type, root: Root)
            elements(count, datatype));
        $define!(Allgather {
            nonblocking: MPI_Iallgather MPI_Iallgather_c, mpi_iallgather_ mpi_iallgather_f08_;
            persistent: MPI_Allgather_init MPI_Allgather_init_c, mpi_allgather_init_ mpi_allgather_init_f08_;
            extension: MPIX_Allgather_init, mpix_allgather_init_ mpix_allgather_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, recv_count: Elements, recv_type: Type)
            elements(recv_count, recv_type));
        $define!(Alltoall {
            nonblocking: MPI_Ialltoall MPI_Ialltoall_c, mpi_ialltoall_ mpi_ialltoall_f08_;
            persistent: MPI_Alltoall_init MPI_Alltoall_init_c, mpi_alltoall_init_ mpi_alltoall_init_f08_;
            extension: MPIX_Alltoall_init, mpix_alltoall_init_ mpix_alltoall_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, recv_count: Elements, recv_type: Type)
            elements(recv_count, recv_type));
        $define!(Gather {
            nonblocking: MPI_Igather MPI_Igather_c, mpi_igather_ mpi_igather_f08_;
            persistent: MPI_Gather_init MPI_Gather_init_c, mpi_gather_init_ mpi_gather_init_f08_;
            extension: MPIX_Gather_init, mpix_gather_init_ mpix_gather_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, recv_count: Elements, recv_type: Type,
            root: Root)
            of_sides(send, (send_count, send_type), (recv_count, recv_type)));
        $define!(Scatter {
            nonblocking: MPI_Iscatter MPI_Iscatter_c, mpi_iscatter_ mpi_iscatter_f08_;
            persistent: MPI_Scatter_init MPI_Scatter_init_c, mpi_scatter_init_ mpi_scatter_init_f08_;
            extension: MPIX_Scatter_init, mpix_scatter_init_ mpix_scatter_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, recv_count: Elements, recv_type: Type,
            root: Root)
            of_sides(recv, (recv_count, recv_type), (send_count, send_type)));
        $define!(Allgatherv {
            nonblocking: MPI_Iallgatherv MPI_Iallgatherv_c, mpi_iallgatherv_ mpi_iallgatherv_f08_;
            persistent: MPI_Allgatherv_init MPI_Allgatherv_init_c,
                mpi_allgatherv_init_ mpi_allgatherv_init_f08_;
            extension: MPIX_Allgatherv_init, mpix_allgatherv_init_ mpix_allgatherv_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, counts: Counts, places: Places,
            recv_type: Type)
            mean(counts, recv_type));
        $define!(Gatherv {
            nonblocking: MPI_Igatherv MPI_Igatherv_c, mpi_igatherv_ mpi_igatherv_f08_;
            persistent: MPI_Gatherv_init MPI_Gatherv_init_c, mpi_gatherv_init_ mpi_gatherv_init_f08_;
            extension: MPIX_Gatherv_init, mpix_gatherv_init_ mpix_gatherv_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, counts: Counts, places: Places,
            recv_type: Type, root: Root)
            sizeless());
        $define!(Scatterv {
            nonblocking: MPI_Iscatterv MPI_Iscatterv_c, mpi_iscatterv_ mpi_iscatterv_f08_;
            persistent: MPI_Scatterv_init MPI_Scatterv_init_c, mpi_scatterv_init_ mpi_scatterv_init_f08_;
            extension: MPIX_Scatterv_init, mpix_scatterv_init_ mpix_scatterv_init_f08_;
        } (send: In, counts: Counts, places: Places, send_type: Type, recv: Out, recv_count: Elements,
            recv_type: Type, root: Root)
            sizeless());
        $define!(Alltoallv {
            nonblocking: MPI_Ialltoallv MPI_Ialltoallv_c, mpi_ialltoallv_ mpi_ialltoallv_f08_;
            persistent: MPI_Alltoallv_init MPI_Alltoallv_init_c, mpi_alltoallv_init_ mpi_alltoallv_init_f08_;
            extension: MPIX_Alltoallv_init, mpix_alltoallv_init_ mpix_alltoallv_init_f08_;
        } (send: In, send_counts: Counts, send_places: Places, send_type: Type, recv: Out, recv_counts: Counts,
            recv_places: Places, recv_type: Type)
            sizeless());
        $define!(Alltoallw {
            nonblocking: MPI_Ialltoallw MPI_Ialltoallw_c, mpi_ialltoallw_ mpi_ialltoallw_f08_;
            persistent: MPI_Alltoallw_init MPI_Alltoallw_init_c, mpi_alltoallw_init_ mpi_alltoallw_init_f08_;
            extension: MPIX_Alltoallw_init, mpix_alltoallw_init_ mpix_alltoallw_init_f08_;
        } (send: In, send_counts: Counts, send_places: Places, send_types: Types, recv: Out,
            recv_counts: Counts, recv_places: Places, recv_types: Types)
            sizeless());
        $define!(Allgather {
            neighborhood: MPI_Neighbor_allgather MPI_Neighbor_allgather_c,
                mpi_neighbor_allgather_ mpi_neighbor_allgather_f08_;
            neighborhood_nonblocking: MPI_Ineighbor_allgather MPI_Ineighbor_allgather_c,
                mpi_ineighbor_allgather_ mpi_ineighbor_allgather_f08_;
            neighborhood_persistent: MPI_Neighbor_allgather_init MPI_Neighbor_allgather_init_c,
                mpi_neighbor_allgather_init_ mpi_neighbor_allgather_init_f08_;
            neighborhood_extension: MPIX_Neighbor_allgather_init,
                mpix_neighbor_allgather_init_ mpix_neighbor_allgather_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, recv_count: Elements, recv_type: Type)
            elements(recv_count, recv_type));
        $define!(Alltoall {
            neighborhood: MPI_Neighbor_alltoall MPI_Neighbor_alltoall_c,
                mpi_neighbor_alltoall_ mpi_neighbor_alltoall_f08_;
            neighborhood_nonblocking: MPI_Ineighbor_alltoall MPI_Ineighbor_alltoall_c,
                mpi_ineighbor_alltoall_ mpi_ineighbor_alltoall_f08_;
            neighborhood_persistent: MPI_Neighbor_alltoall_init MPI_Neighbor_alltoall_init_c,
                mpi_neighbor_alltoall_init_ mpi_neighbor_alltoall_init_f08_;
            neighborhood_extension: MPIX_Neighbor_alltoall_init,
                mpix_neighbor_alltoall_init_ mpix_neighbor_alltoall_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, recv_count: Elements, recv_type: Type)
            elements(recv_count, recv_type));
        $define!(Allgatherv {
            neighborhood: MPI_Neighbor_allgatherv MPI_Neighbor_allgatherv_c,
                mpi_neighbor_allgatherv_ mpi_neighbor_allgatherv_f08_;
            neighborhood_nonblocking: MPI_Ineighbor_allgatherv MPI_Ineighbor_allgatherv_c,
                mpi_ineighbor_allgatherv_ mpi_ineighbor_allgatherv_f08_;
            neighborhood_persistent: MPI_Neighbor_allgatherv_init MPI_Neighbor_allgatherv_init_c,
                mpi_neighbor_allgatherv_init_ mpi_neighbor_allgatherv_init_f08_;
            neighborhood_extension: MPIX_Neighbor_allgatherv_init,
                mpix_neighbor_allgatherv_init_ mpix_neighbor_allgatherv_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, counts: Counts, places: Places,
            recv_type: Type)
            sizeless());
        $define!(Alltoallv {
            neighborhood: MPI_Neighbor_alltoallv MPI_Neighbor_alltoallv_c,
                mpi_neighbor_alltoallv_ mpi_neighbor_alltoallv_f08_;
            neighborhood_nonblocking: MPI_Ineighbor_alltoallv MPI_Ineighbor_alltoallv_c,
                mpi_ineighbor_alltoallv_ mpi_ineighbor_alltoallv_f08_;
            neighborhood_persistent: MPI_Neighbor_alltoallv_init MPI_Neighbor_alltoallv_init_c,
                mpi_neighbor_alltoallv_init_ mpi_neighbor_alltoallv_init_f08_;
            neighborhood_extension: MPIX_Neighbor_alltoallv_init,
                mpix_neighbor_alltoallv_init_ mpix_neighbor_alltoallv_init_f08_;
        } (send: In, send_counts: Counts, send_places: Places, send_type: Type, recv: Out, recv_counts: Counts,
            recv_places: Places, recv_type: Type)
            sizeless());
        $define!(Alltoallw {
            neighborhood: MPI_Neighbor_alltoallw MPI_Neighbor_alltoallw_c,
                mpi_neighbor_alltoallw_ mpi_neighbor_alltoallw_f08_;
            neighborhood_nonblocking: MPI_Ineighbor_alltoallw MPI_Ineighbor_alltoallw_c,
                mpi_ineighbor_alltoallw_ mpi_ineighbor_alltoallw_f08_;
            neighborhood_persistent: MPI_Neighbor_alltoallw_init MPI_Neighbor_alltoallw_init_c,
                mpi_neighbor_alltoallw_init_ mpi_neighbor_alltoallw_init_f08_;
            neighborhood_extension: MPIX_Neighbor_alltoallw_init,
                mpix_neighbor_alltoallw_init_ mpix_neighbor_alltoallw_init_f08_;
        } (send: In, send_counts: Counts, send_places: Places, send_types: Types, recv: Out,
            recv_counts: Counts, recv_places: Places, recv_types: Types)
            sizeless());
    };
}

/// The same of the one without.
macro_rules! passing_barrier {
    ($define:ident) => {
        $define!(Barrier {
            nonblocking: MPI_Ibarrier, mpi_ibarrier_ mpi_ibarrier_f08_;
            persistent: MPI_Barrier_init, mpi_barrier_init_ mpi_barrier_init_f08_;
            extension: MPIX_Barrier_init, mpix_barrier_init_ mpix_barrier_init_f08_;
        } ()
            sizeless());
    };
}
pub(crate) use {passing_barrier, passing_with_buffers};
