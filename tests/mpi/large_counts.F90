! Collectives of mpi_f08 with counts of kind MPI_COUNT_KIND, which MPI 4 has.
! Prints "ok" when every result is right.
program large_counts
    use mpi_f08
    implicit none
    integer(MPI_COUNT_KIND), parameter :: n = 100
    integer(8) :: a(4 * n), b(4 * n)
    integer(MPI_COUNT_KIND) :: counts(4)
    integer(MPI_ADDRESS_KIND) :: places(4)
    integer :: rank, ranks, round, r, wrong, all_wrong

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    counts = n
    places = [(n * (r - 1), r = 1, 4)]
    wrong = 0
    do round = 1, 20
        a = rank + round
        call MPI_Allreduce(a, b, n, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD)
        if (any(b(1:n) /= ranks * round + ranks * (ranks - 1) / 2)) wrong = wrong + 1
        call MPI_Reduce(a, b, n, MPI_INTEGER8, MPI_MAX, 0, MPI_COMM_WORLD)
        if (rank == 0 .and. any(b(1:n) /= ranks - 1 + round)) wrong = wrong + 1
        call MPI_Scan(a, b, n, MPI_INTEGER8, MPI_MAX, MPI_COMM_WORLD)
        if (any(b(1:n) /= rank + round)) wrong = wrong + 1
        call MPI_Allgather(a, n, MPI_INTEGER8, b, n, MPI_INTEGER8, MPI_COMM_WORLD)
        call check()
        call MPI_Alltoall(a, n, MPI_INTEGER8, b, n, MPI_INTEGER8, MPI_COMM_WORLD)
        call check()
        call MPI_Allgatherv(a, n, MPI_INTEGER8, b, counts, places, MPI_INTEGER8, MPI_COMM_WORLD)
        call check()
        call MPI_Alltoallv(a, counts, places, MPI_INTEGER8, b, counts, places, MPI_INTEGER8, MPI_COMM_WORLD)
        call check()
        call MPI_Bcast(a, n, MPI_INTEGER8, ranks - 1, MPI_COMM_WORLD)
        if (any(a(1:n) /= ranks - 1 + round)) wrong = wrong + 1
    end do
    call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0 .and. all_wrong == 0) print '(a)', 'ok'
    call MPI_Finalize()

contains
    subroutine check()
        integer :: from
        do from = 1, ranks
            if (any(b(n * (from - 1) + 1:n * from) /= from - 1 + round)) wrong = wrong + 1
        end do
    end subroutine
end program
