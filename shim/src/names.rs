//! The collectives by all their names: those that are tuned, and those that pass through: nonblocking, persistent and on
//! the neighbours of a topology.
//!
//! Each function has a name in C, and one for large counts, and two names in Fortran; a tuned one also that of the
//! library's function. What stands for the types of arguments says the file that defines the functions; there they
//! become [`crate::arguments::Arguments`].

/// Has those with buffers defined.
macro_rules! with_buffers {
    ($define:ident) => {
        $define!(Allreduce {
            blocking allreduce: MPI_Allreduce MPI_Allreduce_c, mpi_allreduce_ mpi_allreduce_f08_;
            nonblocking: MPI_Iallreduce MPI_Iallreduce_c, mpi_iallreduce_ mpi_iallreduce_f08_;
            persistent: MPI_Allreduce_init MPI_Allreduce_init_c, mpi_allreduce_init_ mpi_allreduce_init_f08_;
            extension: MPIX_Allreduce_init, mpix_allreduce_init_ mpix_allreduce_init_f08_;
        } (send: In, recv: Out, count: Elements, datatype: Type, op: Operation)
            reduction((send, recv), Counted::all(count), datatype, op, 0));
        $define!(Reduce {
            blocking reduce: MPI_Reduce MPI_Reduce_c, mpi_reduce_ mpi_reduce_f08_;
            nonblocking: MPI_Ireduce MPI_Ireduce_c, mpi_ireduce_ mpi_ireduce_f08_;
            persistent: MPI_Reduce_init MPI_Reduce_init_c, mpi_reduce_init_ mpi_reduce_init_f08_;
            extension: MPIX_Reduce_init, mpix_reduce_init_ mpix_reduce_init_f08_;
        } (send: In, recv: Out, count: Elements, datatype: Type, op: Operation, root: Root)
            reduction((send, recv), Counted::all(count), datatype, op, root));
        $define!(Scan {
            blocking scan: MPI_Scan MPI_Scan_c, mpi_scan_ mpi_scan_f08_;
            nonblocking: MPI_Iscan MPI_Iscan_c, mpi_iscan_ mpi_iscan_f08_;
            persistent: MPI_Scan_init MPI_Scan_init_c, mpi_scan_init_ mpi_scan_init_f08_;
            extension: MPIX_Scan_init, mpix_scan_init_ mpix_scan_init_f08_;
        } (send: In, recv: Out, count: Elements, datatype: Type, op: Operation)
            reduction((send, recv), Counted::all(count), datatype, op, 0));
        $define!(Exscan {
            blocking exscan: MPI_Exscan MPI_Exscan_c, mpi_exscan_ mpi_exscan_f08_;
            nonblocking: MPI_Iexscan MPI_Iexscan_c, mpi_iexscan_ mpi_iexscan_f08_;
            persistent: MPI_Exscan_init MPI_Exscan_init_c, mpi_exscan_init_ mpi_exscan_init_f08_;
            extension: MPIX_Exscan_init, mpix_exscan_init_ mpix_exscan_init_f08_;
        } (send: In, recv: Out, count: Elements, datatype: Type, op: Operation)
            reduction((send, recv), Counted::all(count), datatype, op, 0));
        $define!(ReduceScatterBlock {
            blocking reduce_scatter_block: MPI_Reduce_scatter_block MPI_Reduce_scatter_block_c,
                mpi_reduce_scatter_block_ mpi_reduce_scatter_block_f08_;
            nonblocking: MPI_Ireduce_scatter_block MPI_Ireduce_scatter_block_c,
                mpi_ireduce_scatter_block_ mpi_ireduce_scatter_block_f08_;
            persistent: MPI_Reduce_scatter_block_init MPI_Reduce_scatter_block_init_c,
                mpi_reduce_scatter_block_init_ mpi_reduce_scatter_block_init_f08_;
            extension: MPIX_Reduce_scatter_block_init,
                mpix_reduce_scatter_block_init_ mpix_reduce_scatter_block_init_f08_;
        } (send: In, recv: Out, count: Elements, datatype: Type, op: Operation)
            reduction((send, recv), Counted::all(count), datatype, op, 0));
        $define!(ReduceScatter {
            blocking reduce_scatter: MPI_Reduce_scatter MPI_Reduce_scatter_c,
                mpi_reduce_scatter_ mpi_reduce_scatter_f08_;
            nonblocking: MPI_Ireduce_scatter MPI_Ireduce_scatter_c,
                mpi_ireduce_scatter_ mpi_ireduce_scatter_f08_;
            persistent: MPI_Reduce_scatter_init MPI_Reduce_scatter_init_c,
                mpi_reduce_scatter_init_ mpi_reduce_scatter_init_f08_;
            extension: MPIX_Reduce_scatter_init, mpix_reduce_scatter_init_ mpix_reduce_scatter_init_f08_;
        } (send: In, recv: Out, counts: Counts, datatype: Type, op: Operation)
            reduction((send, recv), Counted::Each(List::of(counts)), datatype, op, 0));
        $define!(Bcast {
            blocking bcast: MPI_Bcast MPI_Bcast_c, mpi_bcast_ mpi_bcast_f08_;
            nonblocking: MPI_Ibcast MPI_Ibcast_c, mpi_ibcast_ mpi_ibcast_f08_;
            persistent: MPI_Bcast_init MPI_Bcast_init_c, mpi_bcast_init_ mpi_bcast_init_f08_;
            extension: MPIX_Bcast_init, mpix_bcast_init_ mpix_bcast_init_f08_;
        } (buffer: Out, count: Elements, datatype: Type, root: Root)
            Arguments::Bcast { all: Side::new(buffer, count, datatype), root });
        $define!(Allgather {
            blocking allgather: MPI_Allgather MPI_Allgather_c, mpi_allgather_ mpi_allgather_f08_;
            nonblocking: MPI_Iallgather MPI_Iallgather_c, mpi_iallgather_ mpi_iallgather_f08_;
            persistent: MPI_Allgather_init MPI_Allgather_init_c, mpi_allgather_init_ mpi_allgather_init_f08_;
            extension: MPIX_Allgather_init, mpix_allgather_init_ mpix_allgather_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, recv_count: Elements, recv_type: Type)
            blocks((send, send_count, send_type), (recv, recv_count, recv_type), 0));
        $define!(Alltoall {
            blocking alltoall: MPI_Alltoall MPI_Alltoall_c, mpi_alltoall_ mpi_alltoall_f08_;
            nonblocking: MPI_Ialltoall MPI_Ialltoall_c, mpi_ialltoall_ mpi_ialltoall_f08_;
            persistent: MPI_Alltoall_init MPI_Alltoall_init_c, mpi_alltoall_init_ mpi_alltoall_init_f08_;
            extension: MPIX_Alltoall_init, mpix_alltoall_init_ mpix_alltoall_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, recv_count: Elements, recv_type: Type)
            blocks((send, send_count, send_type), (recv, recv_count, recv_type), 0));
        $define!(Gather {
            blocking gather: MPI_Gather MPI_Gather_c, mpi_gather_ mpi_gather_f08_;
            nonblocking: MPI_Igather MPI_Igather_c, mpi_igather_ mpi_igather_f08_;
            persistent: MPI_Gather_init MPI_Gather_init_c, mpi_gather_init_ mpi_gather_init_f08_;
            extension: MPIX_Gather_init, mpix_gather_init_ mpix_gather_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, recv_count: Elements, recv_type: Type,
            root: Root)
            blocks((send, send_count, send_type), (recv, recv_count, recv_type), root));
        $define!(Scatter {
            blocking scatter: MPI_Scatter MPI_Scatter_c, mpi_scatter_ mpi_scatter_f08_;
            nonblocking: MPI_Iscatter MPI_Iscatter_c, mpi_iscatter_ mpi_iscatter_f08_;
            persistent: MPI_Scatter_init MPI_Scatter_init_c, mpi_scatter_init_ mpi_scatter_init_f08_;
            extension: MPIX_Scatter_init, mpix_scatter_init_ mpix_scatter_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, recv_count: Elements, recv_type: Type,
            root: Root)
            blocks((send, send_count, send_type), (recv, recv_count, recv_type), root));
        $define!(Allgatherv {
            blocking allgatherv: MPI_Allgatherv MPI_Allgatherv_c, mpi_allgatherv_ mpi_allgatherv_f08_;
            nonblocking: MPI_Iallgatherv MPI_Iallgatherv_c, mpi_iallgatherv_ mpi_iallgatherv_f08_;
            persistent: MPI_Allgatherv_init MPI_Allgatherv_init_c,
                mpi_allgatherv_init_ mpi_allgatherv_init_f08_;
            extension: MPIX_Allgatherv_init, mpix_allgatherv_init_ mpix_allgatherv_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, counts: Counts, places: Places,
            recv_type: Type)
            uneven(One(Side::new(send, send_count, send_type)),
                Each(Listed::new(recv, counts, places, recv_type)), 0));
        $define!(Gatherv {
            blocking gatherv: MPI_Gatherv MPI_Gatherv_c, mpi_gatherv_ mpi_gatherv_f08_;
            nonblocking: MPI_Igatherv MPI_Igatherv_c, mpi_igatherv_ mpi_igatherv_f08_;
            persistent: MPI_Gatherv_init MPI_Gatherv_init_c, mpi_gatherv_init_ mpi_gatherv_init_f08_;
            extension: MPIX_Gatherv_init, mpix_gatherv_init_ mpix_gatherv_init_f08_;
        } (send: In, send_count: Elements, send_type: Type, recv: Out, counts: Counts, places: Places,
            recv_type: Type, root: Root)
            uneven(One(Side::new(send, send_count, send_type)),
                Each(Listed::new(recv, counts, places, recv_type)), root));
        $define!(Scatterv {
            blocking scatterv: MPI_Scatterv MPI_Scatterv_c, mpi_scatterv_ mpi_scatterv_f08_;
            nonblocking: MPI_Iscatterv MPI_Iscatterv_c, mpi_iscatterv_ mpi_iscatterv_f08_;
            persistent: MPI_Scatterv_init MPI_Scatterv_init_c, mpi_scatterv_init_ mpi_scatterv_init_f08_;
            extension: MPIX_Scatterv_init, mpix_scatterv_init_ mpix_scatterv_init_f08_;
        } (send: In, counts: Counts, places: Places, send_type: Type, recv: Out, recv_count: Elements,
            recv_type: Type, root: Root)
            uneven(Each(Listed::new(send, counts, places, send_type)),
                One(Side::new(recv, recv_count, recv_type)), root));
        $define!(Alltoallv {
            blocking alltoallv: MPI_Alltoallv MPI_Alltoallv_c, mpi_alltoallv_ mpi_alltoallv_f08_;
            nonblocking: MPI_Ialltoallv MPI_Ialltoallv_c, mpi_ialltoallv_ mpi_ialltoallv_f08_;
            persistent: MPI_Alltoallv_init MPI_Alltoallv_init_c, mpi_alltoallv_init_ mpi_alltoallv_init_f08_;
            extension: MPIX_Alltoallv_init, mpix_alltoallv_init_ mpix_alltoallv_init_f08_;
        } (send: In, send_counts: Counts, send_places: Places, send_type: Type, recv: Out, recv_counts: Counts,
            recv_places: Places, recv_type: Type)
            uneven(Each(Listed::new(send, send_counts, send_places, send_type)),
                Each(Listed::new(recv, recv_counts, recv_places, recv_type)), 0));
        $define!(Alltoallw {
            blocking alltoallw: MPI_Alltoallw MPI_Alltoallw_c, mpi_alltoallw_ mpi_alltoallw_f08_;
            nonblocking: MPI_Ialltoallw MPI_Ialltoallw_c, mpi_ialltoallw_ mpi_ialltoallw_f08_;
            persistent: MPI_Alltoallw_init MPI_Alltoallw_init_c, mpi_alltoallw_init_ mpi_alltoallw_init_f08_;
            extension: MPIX_Alltoallw_init, mpix_alltoallw_init_ mpix_alltoallw_init_f08_;
        } (send: In, send_counts: Counts, send_places: Places, send_types: Types, recv: Out,
            recv_counts: Counts, recv_places: Places, recv_types: Types)
            uneven(Each(typed(send, send_counts, send_places, send_types)),
                Each(typed(recv, recv_counts, recv_places, recv_types)), 0));
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
            blocks((send, send_count, send_type), (recv, recv_count, recv_type), 0));
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
            blocks((send, send_count, send_type), (recv, recv_count, recv_type), 0));
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
            Arguments::Nothing);
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
            Arguments::Nothing);
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
            Arguments::Nothing);
    };
}

/// The same of the one without, but for its tuned form, of which there is one in every language.
macro_rules! without_buffers {
    ($define:ident) => {
        $define!(Barrier {
            nonblocking: MPI_Ibarrier, mpi_ibarrier_ mpi_ibarrier_f08_;
            persistent: MPI_Barrier_init, mpi_barrier_init_ mpi_barrier_init_f08_;
            extension: MPIX_Barrier_init, mpix_barrier_init_ mpix_barrier_init_f08_;
        } ()
            Arguments::Nothing);
    };
}

/// Has a function that passes through defined by its manner, where the library has it; `@requesting` those that return a
/// request, `@prepared` those whose request is to be started.
macro_rules! in_manner {
    // Those are tuned.
    ($define:ident blocking $($rest:tt)*) => {};
    ($define:ident nonblocking $($rest:tt)*) => { $define!(@requesting Nonblocking, $($rest)*); };
    ($define:ident neighborhood $($rest:tt)*) => { $define!(@returning Neighborhood, $($rest)*); };
    ($define:ident neighborhood_nonblocking $($rest:tt)*) => {
        $define!(@requesting NeighborhoodNonblocking, $($rest)*);
    };
    ($define:ident persistent $($rest:tt)*) => {
        #[cfg(persistent = "standard")]
        $define!(@prepared Persistent, $($rest)*);
    };
    ($define:ident extension $($rest:tt)*) => {
        #[cfg(persistent = "extension")]
        $define!(@prepared Persistent, $($rest)*);
    };
    ($define:ident neighborhood_persistent $($rest:tt)*) => {
        #[cfg(persistent = "standard")]
        $define!(@prepared NeighborhoodPersistent, $($rest)*);
    };
    ($define:ident neighborhood_extension $($rest:tt)*) => {
        #[cfg(persistent = "extension")]
        $define!(@prepared NeighborhoodPersistent, $($rest)*);
    };
}
pub(crate) use {in_manner, with_buffers, without_buffers};
