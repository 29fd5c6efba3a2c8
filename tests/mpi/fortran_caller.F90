! The tuned collectives as a Fortran program calls them: through mpif.h (-DMPIFH), the module mpi
! (-DMODULE_MPI) or the module mpi_f08. With MPI_IN_PLACE, MPI_BOTTOM, an operation of its own, the
! error argument and, in mpi_f08, without it. Prints "ok" when every result is right.
program fortran_caller
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
#if defined(MODULE_MPI) || defined(MPIFH)
#define HANDLE(kind) integer
#else
#define HANDLE(kind) type(kind)
#endif
   integer, parameter :: most = 40000
   integer :: sizes(5) = [0, 1, 33, 3000, most]
   integer :: rank, n, ierror, i, k, count, root, round
   logical :: right = .true., all_right
   integer, allocatable :: send(:), recv(:)
   double precision, allocatable :: x(:), y(:)
   HANDLE(MPI_Op) :: product_op
   external :: user_product

   call MPI_Init(ierror)
   right = right .and. ierror == MPI_SUCCESS
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, n, ierror)
   call MPI_Op_create(user_product, .true., product_op, ierror)
   allocate (send(most*n), recv(most*n), x(most), y(most))

   do round = 1, 3
      do k = 1, 5
         count = sizes(k)
         root = mod(k, n)

         send(1:count) = [(rank + i, i=1, count)]
         ierror = -1
         call MPI_Allreduce(send, recv, count, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
         right = right .and. ierror == MPI_SUCCESS
         right = right .and. all(recv(1:count) == [(n*(n - 1)/2 + n*i, i=1, count)])

         recv(1:count) = send(1:count)
         call MPI_Allreduce(MPI_IN_PLACE, recv, count, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
         right = right .and. all(recv(1:count) == [(n - 1 + i, i=1, count)])

         x = 2d0
         call MPI_Allreduce(x, y, count, MPI_DOUBLE_PRECISION, product_op, MPI_COMM_WORLD, ierror)
         right = right .and. all(y(1:count) == 2d0**n)

         recv = -7
         call MPI_Reduce(send, recv, count, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, ierror)
         if (rank == root) then
            right = right .and. all(recv(1:count) == [(n*(n - 1)/2 + n*i, i=1, count)])
         else
            right = right .and. all(recv == -7)
         end if

         ! MPICH 4.0.2 itself crashes in larger calls of this kind at other roots than 0.
         recv(1:count) = send(1:count)
         if (rank == 0) then
            call MPI_Reduce(MPI_IN_PLACE, recv, count, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
            right = right .and. all(recv(1:count) == [(n*(n - 1)/2 + n*i, i=1, count)])
         else
            call MPI_Reduce(send, recv, count, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
         end if

         recv(1:count) = rank
         call MPI_Bcast(recv, count, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
         right = right .and. ierror == MPI_SUCCESS .and. all(recv(1:count) == root)
         call from_the_bottom(count, root)

         call MPI_Allgather(send, count, MPI_INTEGER, recv, count, MPI_INTEGER, MPI_COMM_WORLD, ierror)
         do i = 0, n - 1
            if (count > 0) right = right .and. recv(i*count + 1) == i + 1 .and. recv((i + 1)*count) == i + count
         end do
         recv = -1
         if (count > 0) recv(rank*count + 1:(rank + 1)*count) = rank
         call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, count, MPI_INTEGER, MPI_COMM_WORLD, ierror)
         do i = 0, n - 1
            right = right .and. all(recv(i*count + 1:(i + 1)*count) == i)
         end do

         send = rank
         call MPI_Alltoall(send, count, MPI_INTEGER, recv, count, MPI_INTEGER, MPI_COMM_WORLD, ierror)
         do i = 0, n - 1
            right = right .and. all(recv(i*count + 1:(i + 1)*count) == i)
         end do
         call other_collectives(count, root)
         call requests(count, root, mod(5*round + k, 7))
#if !defined(MODULE_MPI) && !defined(MPIFH)
         send = rank
         call MPI_Bcast(send, count, MPI_INTEGER, root, MPI_COMM_WORLD)
         right = right .and. all(send(1:count) == root)
#endif
      end do
   end do

   ! A wrong call comes back with its error, and the next right one is right.
   call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
   call MPI_Bcast(send, -1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
   right = right .and. ierror /= MPI_SUCCESS
   call MPI_Bcast(send, 1, MPI_INTEGER, n, MPI_COMM_WORLD, ierror)
   right = right .and. ierror /= MPI_SUCCESS

   call MPI_Op_free(product_op, ierror)
   call MPI_Reduce(right, all_right, 1, MPI_LOGICAL, MPI_LAND, 0, MPI_COMM_WORLD, ierror)
   if (rank == 0 .and. all_right) print '(a)', 'ok'
   call MPI_Finalize(ierror)

contains

   ! The other collectives, with lists of counts and of types, and in place.
   subroutine other_collectives(count, root)
      integer, intent(in) :: count, root
      integer :: counts(0:n - 1), at(0:n - 1), bytes_at(0:n - 1), i, part
      HANDLE(MPI_Datatype) :: kinds(0:n - 1)
      do i = 0, n - 1
         counts(i) = count
         at(i) = (n - 1 - i)*count
         bytes_at(i) = at(i)*4
         kinds(i) = MPI_INTEGER
      end do
      call MPI_Barrier(MPI_COMM_WORLD, ierror)
      right = right .and. ierror == MPI_SUCCESS
      send(1:count) = [(rank + i, i=1, count)]

      call MPI_Scan(send, recv, count, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
      right = right .and. all(recv(1:count) == [(rank*(rank + 1)/2 + (rank + 1)*i, i=1, count)])
      recv(1:count) = send(1:count)
      call MPI_Scan(MPI_IN_PLACE, recv, count, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
      right = right .and. all(recv(1:count) == [(rank*(rank + 1)/2 + (rank + 1)*i, i=1, count)])
      call MPI_Exscan(send, recv, count, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
      if (rank > 0) right = right .and. all(recv(1:count) == [(rank*(rank - 1)/2 + rank*i, i=1, count)])
      part = count/n
      call MPI_Reduce_scatter_block(send, recv, part, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
      right = right .and. all(recv(1:part) == [(n*(n - 1)/2 + n*(rank*part + i), i=1, part)])
      counts = part
      counts(0) = count - (n - 1)*part
      call MPI_Reduce_scatter(send, recv, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
      right = right .and. all(recv(1:counts(rank)) == [(n*(n - 1)/2 + n*(sum(counts(0:rank - 1)) + i), i=1, counts(rank))])
      counts = count

      call MPI_Allgatherv(send, count, MPI_INTEGER, recv, counts, at, MPI_INTEGER, MPI_COMM_WORLD, ierror)
      call check_gathered(at, count)
      recv = -1
      recv(at(rank) + 1:at(rank) + count) = send(1:count)
      call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, counts, at, MPI_INTEGER, MPI_COMM_WORLD, ierror)
      call check_gathered(at, count)
      recv = -1
      call MPI_Gatherv(send, count, MPI_INTEGER, recv, counts, at, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
      if (rank == root) call check_gathered(at, count)
      at = [(i*count, i=0, n - 1)]
      recv = -1
      if (rank == root) then
         recv(rank*count + 1:(rank + 1)*count) = send(1:count)
         call MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, count, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
         call check_gathered(at, count)
      else
         call MPI_Gather(send, count, MPI_INTEGER, recv, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD, ierror)
         right = right .and. all(recv == -1)
      end if

      send = 3*root
      if (rank == root) send(1:n*count) = [(i, i=1, n*count)]
      if (rank == root) then
         call MPI_Scatter(send, count, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD, ierror)
      else
         call MPI_Scatter(send, 0, MPI_DATATYPE_NULL, recv, count, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
         right = right .and. all(recv(1:count) == [(rank*count + i, i=1, count)])
      end if
      call MPI_Scatterv(send, counts, at, MPI_INTEGER, recv, count, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
      right = right .and. all(recv(1:count) == [(rank*count + i, i=1, count)])

      send(1:n*count) = [(100000*rank + i, i=1, n*count)]
      recv = -1
      call MPI_Alltoallv(send, counts, at, MPI_INTEGER, recv, counts, at, MPI_INTEGER, MPI_COMM_WORLD, ierror)
      call check_exchanged(count)
      recv = -1
      bytes_at = 4*at
      call MPI_Alltoallw(send, counts, bytes_at, kinds, recv, counts, bytes_at, kinds, MPI_COMM_WORLD, ierror)
      call check_exchanged(count)
   end subroutine

   ! Nonblocking collectives, completed in one of several ways.
   subroutine requests(count, root, way)
      integer, intent(in) :: count, root, way
      integer, save :: a(most), b(most), c(most)
      integer :: at, done, indices(4), i
      logical :: flag
      HANDLE(MPI_Request) :: started(4)
      send(1:count) = [(rank + i, i=1, count)]
      b(1:count) = rank
      call MPI_Iallreduce(send, a, count, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, started(1), ierror)
      call MPI_Ibcast(b, count, MPI_INTEGER, root, MPI_COMM_WORLD, started(2), ierror)
      call MPI_Ibarrier(MPI_COMM_WORLD, started(3), ierror)
      call MPI_Iscan(send, c, count, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, started(4), ierror)
      right = right .and. ierror == MPI_SUCCESS
      flag = .false.
      done = 0
      select case (way)
      case (0)
         call MPI_Waitall(4, started, MPI_STATUSES_IGNORE, ierror)
      case (1)
         do i = 1, 4
            call MPI_Waitany(4, started, at, MPI_STATUS_IGNORE, ierror)
            ! MPICH 4.0 counts from 0 in mpi_f08.
            right = right .and. at >= 0 .and. at <= 4
         end do
      case (2)
         do while (done < 4)
            call MPI_Waitsome(4, started, at, indices, MPI_STATUSES_IGNORE, ierror)
            done = done + at
         end do
      case (3)
         do while (.not. flag)
            call MPI_Testall(4, started, flag, MPI_STATUSES_IGNORE, ierror)
         end do
      case (4)
         do while (done < 4)
            call MPI_Testany(4, started, at, flag, MPI_STATUS_IGNORE, ierror)
            if (flag) done = done + 1
         end do
      case (5)
         do while (done < 4)
            call MPI_Testsome(4, started, at, indices, MPI_STATUSES_IGNORE, ierror)
            done = done + at
         end do
      case default
         do while (.not. flag)
            call MPI_Test(started(1), flag, MPI_STATUS_IGNORE, ierror)
         end do
         do i = 2, 4
            call MPI_Wait(started(i), MPI_STATUS_IGNORE, ierror)
         end do
      end select
      do i = 1, 4
         right = right .and. started(i) == MPI_REQUEST_NULL
      end do
      right = right .and. all(a(1:count) == [(n*(n - 1)/2 + n*i, i=1, count)])
      right = right .and. all(b(1:count) == root)
      right = right .and. all(c(1:count) == [(rank + i, i=1, count)])
   end subroutine

   subroutine check_gathered(at, count)
      integer, intent(in) :: at(0:), count
      integer :: r, i
      do r = 0, n - 1
         right = right .and. all(recv(at(r) + 1:at(r) + count) == [(r + i, i=1, count)])
      end do
   end subroutine

   subroutine check_exchanged(count)
      integer, intent(in) :: count
      integer :: r, i
      do r = 0, n - 1
         right = right .and. all(recv(r*count + 1:(r + 1)*count) == [(100000*r + rank*count + i, i=1, count)])
      end do
   end subroutine

   ! The same bytes, described by their absolute address.
   subroutine from_the_bottom(count, root)
      integer, intent(in) :: count, root
      integer, target, save :: data(most)
      integer(MPI_ADDRESS_KIND) :: address(1)
      integer :: lengths(1)
      HANDLE(MPI_Datatype) :: kinds(1), whole
      data(1:count) = rank
      call MPI_Get_address(data, address(1), ierror)
      lengths(1) = count
      kinds(1) = MPI_INTEGER
      call MPI_Type_create_struct(1, lengths, address, kinds, whole, ierror)
      call MPI_Type_commit(whole, ierror)
      call MPI_Bcast(MPI_BOTTOM, 1, whole, root, MPI_COMM_WORLD, ierror)
      right = right .and. all(data(1:count) == root)
      call MPI_Type_free(whole, ierror)
   end subroutine
end program

subroutine user_product(a, b, n, kind)
#if !defined(MODULE_MPI) && !defined(MPIFH)
   use mpi_f08, only: MPI_Datatype
#endif
   implicit none
   integer :: n
   double precision :: a(n), b(n)
#if defined(MODULE_MPI) || defined(MPIFH)
   integer :: kind
#else
   type(MPI_Datatype) :: kind
#endif
   b = a*b
end subroutine
