! As caller.c, in Fortran: through mpif.h (-DMPIFH) or the module mpi_f08.
program caller
#if defined(MPIFH)
   implicit none
   include 'mpif.h'
#else
   use mpi_f08
   implicit none
#endif
   character(len=16) :: argument
   integer :: blocks, calls, block, i, ierror
   integer(8) :: start, end, per_second
   double precision :: send(1), recv(1)

   call get_command_argument(1, argument)
   read (argument, *) blocks
   call get_command_argument(2, argument)
   read (argument, *) calls
   call system_clock(count_rate=per_second)
   send = 1
   call MPI_Init(ierror)
   do block = 0, blocks
      call system_clock(start)
      do i = 1, calls
         call MPI_Allreduce(send, recv, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_SELF, ierror)
      end do
      call system_clock(end)
      if (block > 0) print '(f0.2)', 1d9*dble(end - start)/dble(per_second)/calls
   end do
   call MPI_Finalize(ierror)
end program
