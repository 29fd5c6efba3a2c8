//! The functions that are counted, in C and Fortran: one table.

/// Calls a macro with all functions: those with buffers, then those without.
///
/// A row holds functions with the same arguments: for each its kind, its name in C, where there is one that with large
/// counts, and its names in Fortran; then what is done with the call. `KIND` is the kind.
macro_rules! functions {
    ($define:ident) => {
        $define! {
            buffers [
                Send: MPI_Send MPI_Send_c, mpi_send_ mpi_send_f08_;
                Ssend: MPI_Ssend MPI_Ssend_c, mpi_ssend_ mpi_ssend_f08_;
                Bsend: MPI_Bsend MPI_Bsend_c, mpi_bsend_ mpi_bsend_f08_;
                Rsend: MPI_Rsend MPI_Rsend_c, mpi_rsend_ mpi_rsend_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, to: Int, tag: Int, comm: Comm)
                call => timed(KIND, call, |recording| recording.sent(count.get(), datatype.get(), to.get(), comm.get()));
            buffers [
                Isend: MPI_Isend MPI_Isend_c, mpi_isend_ mpi_isend_f08_;
                Issend: MPI_Issend MPI_Issend_c, mpi_issend_ mpi_issend_f08_;
                Ibsend: MPI_Ibsend MPI_Ibsend_c, mpi_ibsend_ mpi_ibsend_f08_;
                Irsend: MPI_Irsend MPI_Irsend_c, mpi_irsend_ mpi_irsend_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, to: Int, tag: Int, comm: Comm, request: Pointer)
                call => counted(KIND, call, |recording| recording.sent(count.get(), datatype.get(), to.get(), comm.get()));
            buffers [
                SendInit: MPI_Send_init MPI_Send_init_c, mpi_send_init_ mpi_send_init_f08_;
                SsendInit: MPI_Ssend_init MPI_Ssend_init_c, mpi_ssend_init_ mpi_ssend_init_f08_;
                BsendInit: MPI_Bsend_init MPI_Bsend_init_c, mpi_bsend_init_ mpi_bsend_init_f08_;
                RsendInit: MPI_Rsend_init MPI_Rsend_init_c, mpi_rsend_init_ mpi_rsend_init_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, to: Int, tag: Int, comm: Comm, request: Requests)
                call => counted(KIND, call, |recording| {
                    recording.prepared(count.get(), datatype.get(), to.get(), comm.get(), request.bits(0));
                });
            buffers [
                Sendrecv: MPI_Sendrecv MPI_Sendrecv_c, mpi_sendrecv_ mpi_sendrecv_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, to: Int, tag: Int, received: Pointer, received_count: Count,
                received_type: Type, from: Int, received_tag: Int, comm: Comm, status: Pointer)
                call => timed(KIND, call, |recording| recording.sent(count.get(), datatype.get(), to.get(), comm.get()));
            buffers [
                SendrecvReplace: MPI_Sendrecv_replace MPI_Sendrecv_replace_c,
                    mpi_sendrecv_replace_ mpi_sendrecv_replace_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, to: Int, tag: Int, from: Int, received_tag: Int, comm: Comm,
                status: Pointer)
                call => timed(KIND, call, |recording| recording.sent(count.get(), datatype.get(), to.get(), comm.get()));
            buffers [
                Isendrecv: MPI_Isendrecv MPI_Isendrecv_c, mpi_isendrecv_ mpi_isendrecv_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, to: Int, tag: Int, received: Pointer, received_count: Count,
                received_type: Type, from: Int, received_tag: Int, comm: Comm, request: Pointer)
                call => counted(KIND, call, |recording| recording.sent(count.get(), datatype.get(), to.get(), comm.get()));
            buffers [
                IsendrecvReplace: MPI_Isendrecv_replace MPI_Isendrecv_replace_c,
                    mpi_isendrecv_replace_ mpi_isendrecv_replace_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, to: Int, tag: Int, from: Int, received_tag: Int, comm: Comm,
                request: Pointer)
                call => counted(KIND, call, |recording| recording.sent(count.get(), datatype.get(), to.get(), comm.get()));
            buffers [
                Recv: MPI_Recv MPI_Recv_c, mpi_recv_ mpi_recv_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, from: Int, tag: Int, comm: Comm, status: Pointer)
                call => timed(KIND, call, |_| {});
            buffers [
                Irecv: MPI_Irecv MPI_Irecv_c, mpi_irecv_ mpi_irecv_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, from: Int, tag: Int, comm: Comm, request: Pointer)
                call => counted(KIND, call, |_| {});
            buffers [
                Mrecv: MPI_Mrecv MPI_Mrecv_c, mpi_mrecv_ mpi_mrecv_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, message: Pointer, status: Pointer)
                call => timed(KIND, call, |_| {});
            buffers [
                Imrecv: MPI_Imrecv MPI_Imrecv_c, mpi_imrecv_ mpi_imrecv_f08_;
            ] (buffer: Pointer, count: Count, datatype: Type, message: Pointer, request: Pointer)
                call => counted(KIND, call, |_| {});
            alone [
                Probe: MPI_Probe, mpi_probe_ mpi_probe_f08_;
            ] (from: Int, tag: Int, comm: Comm, status: Pointer) call => timed(KIND, call, |_| {});
            alone [
                Mprobe: MPI_Mprobe, mpi_mprobe_ mpi_mprobe_f08_;
            ] (from: Int, tag: Int, comm: Comm, message: Pointer, status: Pointer) call => timed(KIND, call, |_| {});
            alone [
                Iprobe: MPI_Iprobe, mpi_iprobe_ mpi_iprobe_f08_;
            ] (from: Int, tag: Int, comm: Comm, flag: Pointer, status: Pointer) call => counted(KIND, call, |_| {});
            alone [
                Improbe: MPI_Improbe, mpi_improbe_ mpi_improbe_f08_;
            ] (from: Int, tag: Int, comm: Comm, flag: Pointer, message: Pointer, status: Pointer)
                call => counted(KIND, call, |_| {});
            alone [
                Wait: MPI_Wait, mpi_wait_ mpi_wait_f08_;
            ] (request: Pointer, status: Pointer) call => timed(KIND, call, |_| {});
            alone [
                Waitall: MPI_Waitall, mpi_waitall_ mpi_waitall_f08_;
            ] (n: Int, requests: Pointer, statuses: Pointer) call => timed(KIND, call, |_| {});
            alone [
                Waitany: MPI_Waitany, mpi_waitany_ mpi_waitany_f08_;
            ] (n: Int, requests: Pointer, index: Pointer, status: Pointer) call => timed(KIND, call, |_| {});
            alone [
                Waitsome: MPI_Waitsome, mpi_waitsome_ mpi_waitsome_f08_;
            ] (n: Int, requests: Pointer, n_done: Pointer, indices: Pointer, statuses: Pointer)
                call => timed(KIND, call, |_| {});
            alone [
                Test: MPI_Test, mpi_test_ mpi_test_f08_;
            ] (request: Pointer, flag: Pointer, status: Pointer) call => counted(KIND, call, |_| {});
            alone [
                Testall: MPI_Testall, mpi_testall_ mpi_testall_f08_;
            ] (n: Int, requests: Pointer, flag: Pointer, statuses: Pointer) call => counted(KIND, call, |_| {});
            alone [
                Testany: MPI_Testany, mpi_testany_ mpi_testany_f08_;
            ] (n: Int, requests: Pointer, index: Pointer, flag: Pointer, status: Pointer)
                call => counted(KIND, call, |_| {});
            alone [
                Testsome: MPI_Testsome, mpi_testsome_ mpi_testsome_f08_;
            ] (n: Int, requests: Pointer, n_done: Pointer, indices: Pointer, statuses: Pointer)
                call => counted(KIND, call, |_| {});
            alone [
                Start: MPI_Start, mpi_start_ mpi_start_f08_;
            ] (request: Requests)
                call => counted(KIND, call, |recording| recording.started(std::iter::once(request.bits(0))));
            alone [
                Startall: MPI_Startall, mpi_startall_ mpi_startall_f08_;
            ] (n: Int, requests: Requests)
                call => counted(KIND, call, |recording| {
                    let n = usize::try_from(n.get()).unwrap_or(0);
                    recording.started((0..n).map(|place| requests.bits(place)));
                });
            alone [
                RequestFree: MPI_Request_free, mpi_request_free_ mpi_request_free_f08_;
            ] (request: Requests) call => {
                forget_request(request.bits(0));
                counted(KIND, call, |_| {})
            };
            alone [
                CommFree: MPI_Comm_free, mpi_comm_free_ mpi_comm_free_f08_;
                CommDisconnect: MPI_Comm_disconnect, mpi_comm_disconnect_ mpi_comm_disconnect_f08_;
            ] (comm: Comms) call => {
                let handle = comm.bits(0);
                forget_comm(handle);
                let code = call();
                // An attribute's callback may have sent on it meanwhile.
                forget_comm(handle);
                code
            };
            alone [
                Finalize: MPI_Finalize, mpi_finalize_ mpi_finalize_f08_;
            ] () call => {
                finish();
                call()
            };
        }
    };
}

macro_rules! kinds {
    ($($buffers:ident [$($kind:ident: $name:ident $($large:ident)?, $plain:ident $f08:ident;)*] $arguments:tt
     $call:ident => $body:expr;)*) => {
        /// What a call is counted as.
        #[derive(Clone, Copy, Debug)]
        pub enum Kind { $($($kind,)*)* }

        pub const N_KINDS: usize = [$($(Kind::$kind),*),*].len();
        /// The functions' names, by kind.
        pub const NAMES: [&str; N_KINDS] = [$($(stringify!($name)),*),*];
    };
}
functions!(kinds);
pub(crate) use functions;
