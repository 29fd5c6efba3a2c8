! A library of Fortran code that uses MPI through mpif.h (-DMPIFH), the module mpi (-DMODULE_MPI) or the module mpi_f08,
! for a program that has initialised MPI: see fortran_host.c. Says whether every result is right.
subroutine solve(all_right) bind(c, name='solve')
   use iso_c_binding, only: c_int
#if defined(MODULE_MPI)
   use mpi
   implicit none
#elif defined(MPIFH)
   implicit none
   include 'mpif.h'
#else
   use mpi_f08
   implicit none
#endif
   integer(c_int), intent(out) :: all_right
   integer, parameter :: sizes(3) = [1, 100, 5000]
   integer :: rank, n, ierror, round, count, i
   integer, allocatable :: send(:), recv(:)
   logical :: right

   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, n, ierror)
   allocate (send(sizes(3)), recv(sizes(3)))
   right = .true.
   do round = 1, 60
      count = sizes(mod(round, 3) + 1)
      send(1:count) = [(rank + i, i=1, count)]
      recv = -1
      call MPI_Allreduce(send, recv, count, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
      right = right .and. ierror == MPI_SUCCESS
      right = right .and. all(recv(1:count) == [(n*(n - 1)/2 + n*i, i=1, count)])
      recv(1:count) = send(1:count)
      call MPI_Allreduce(MPI_IN_PLACE, recv, count, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
      right = right .and. all(recv(1:count) == [(n - 1 + i, i=1, count)])
      if (rank == 0) recv(1:count) = round
      call MPI_Bcast(recv, count, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
      right = right .and. all(recv(1:count) == round)
      call MPI_Barrier(MPI_COMM_WORLD, ierror)
   end do
   all_right = merge(1, 0, right)
end subroutine solve
