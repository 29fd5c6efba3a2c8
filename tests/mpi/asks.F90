! asks.c in Fortran, with the interface of MPI that a macro names.
program asks
#ifdef MODULE_MPI_F08
  use mpi_f08
  use colltune_f08
#else
#ifdef MODULE_MPI
  use mpi
#endif
  use colltune
#endif
  implicit none
#ifdef MPIFH
  include 'mpif.h'
#endif
  character(len=64), allocatable :: arms(:)
  character(len=64) :: word
  integer :: epochs, epoch, arm, rank, i, code, mine(2), all_ranks(2)

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call get_command_argument(1, word)
  read (word, *) epochs
  allocate (arms(command_argument_count() - 1))
  do i = 1, ubound(arms, 1)
    call get_command_argument(i + 1, arms(i))
  end do
  do epoch = 1, epochs
    arm = colltune_choose(MPI_COMM_WORLD, "way", arms, 8d0)
    ! The ranks must have chosen alike.
    mine = [arm, -arm]
    call MPI_Allreduce(mine, all_ranks, 2, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, code)
    if (all_ranks(1) /= -all_ranks(2)) call MPI_Abort(MPI_COMM_WORLD, 3, code)
    if (rank == 0) write (*, "(2a)", advance="no") trim(arms(arm)), merge(" ", new_line("a"), epoch < epochs)
    call colltune_done(MPI_COMM_WORLD, "way", 1d6)
  end do
  call MPI_Finalize(code)
end program
