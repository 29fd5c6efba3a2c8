! What messages.c does, in parts, with the interface of MPI that a macro names: on three ranks each sends to the next.
program messages
#ifdef MODULE_MPI_F08
  use mpi_f08
#endif
#ifdef MODULE_MPI
  use mpi
#endif
  implicit none
#ifdef MPIFH
  include 'mpif.h'
#endif
#ifdef MODULE_MPI_F08
  type(MPI_Comm) :: comm
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status, statuses(2)
#else
  integer :: comm, requests(2), status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2)
#endif
  double precision :: mine(512), got(512)
  integer :: rank, n, right, left, i, code

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, n, code)
  right = mod(rank + 1, n)
  left = mod(rank + n - 1, n)
  mine = rank
  ! 8 bytes, 32 bytes, 256 bytes.
  call MPI_Irecv(got, 1, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, requests(1), code)
  call MPI_Send(mine, 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, code)
  call MPI_Wait(requests(1), status, code)
  call MPI_Irecv(got, 4, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, requests(1), code)
  call MPI_Isend(mine, 4, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, requests(2), code)
  call MPI_Waitall(2, requests, statuses, code)
  call MPI_Sendrecv(mine, 32, MPI_DOUBLE_PRECISION, right, 1, got, 32, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, &
    status, code)
  ! 1 KiB, three times.
  call MPI_Recv_init(got, 128, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(1), code)
  call MPI_Send_init(mine, 128, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(2), code)
  do i = 1, 3
    call MPI_Startall(2, requests, code)
    call MPI_Waitall(2, requests, statuses, code)
  end do
  call MPI_Request_free(requests(1), code)
  call MPI_Request_free(requests(2), code)
  ! 4 KiB from rank 0 to the last one and to itself, by communicators that are freed.
  do i = 1, 4
    call MPI_Comm_split(MPI_COMM_WORLD, 0, merge(rank, -rank, mod(i, 2) == 0), comm, code)
    if (rank == 0) call MPI_Isend(mine, 512, MPI_DOUBLE_PRECISION, n - 1, 3, comm, requests(1), code)
    if (rank == merge(n - 1, 0, mod(i, 2) == 0)) then
      call MPI_Recv(got, 512, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 3, comm, status, code)
    end if
    if (rank == 0) call MPI_Wait(requests(1), status, code)
    call MPI_Comm_free(comm, code)
  end do
  call MPI_Finalize(code)
end program messages
