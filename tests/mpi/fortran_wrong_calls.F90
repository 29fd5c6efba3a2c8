! Calls of Fortran programs that are wrong, and some that look so and are right, under MPI_ERRORS_RETURN: what each rank
! gets back. Through mpif.h (-DMPIFH), the module mpi (-DMODULE_MPI) or the module mpi_f08.
!
! usage: fortran_wrong_calls [TRY...]
!
! All ranks make the same mistake, on a communicator of its own, between right calls of the same collective, the first
! of which have the shim, if there, set the communicator up. A TRY such as `negative-count:reduce` is left out. Prints
! "TRY rank R: class C, result S, right calls T": S is a sum over what a call that succeeded has received.
program fortran_wrong_calls
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
#define NONE_OF(kind) 99999
#else
#define HANDLE(kind) type(kind)
#define NONE_OF(kind) kind(99999)
#endif
   integer, parameter :: allreduce = 1, reduce = 2, scan = 3, exscan = 4, reduce_scatter = 5, reduce_scatter_block = 6, &
                         bcast = 7, allgather = 8, alltoall = 9, gather = 10, scatter = 11, allgatherv = 12, alltoallv = 13, &
                         gatherv = 14, scatterv = 15, alltoallw = 16, n_collectives = 16
   character(len=20), parameter :: collectives(n_collectives) = [character(len=20) :: 'allreduce', 'reduce', 'scan', &
                         'exscan', 'reduce_scatter', 'reduce_scatter_block', 'bcast', 'allgather', 'alltoall', 'gather', &
                         'scatter', 'allgatherv', 'alltoallv', 'gatherv', 'scatterv', 'alltoallw']
   character(len=28), parameter :: mistakes(13) = [character(len=28) :: 'nothing', 'without-a-type', 'without-a-send-type', &
                         'without-a-receive-type', 'of-no-such-type', 'negative-count', 'without-an-operation', &
                         'with-no-such-operation', 'bits-of-doubles', 'root-beyond', 'root-negative', &
                         'in-place-of-no-type', 'of-no-type-off-the-root']
   integer, parameter :: rooted(7) = [reduce, bcast, gather, scatter, gatherv, scatterv, 0]
   integer, parameter :: block = 48, room = 64*block, ranks_max = 16
   integer :: rank, n, ierror, which, mistake, i, n_answers, source
   integer :: send(room), recv(room), answers(3, 13*n_collectives)
   character(len=52) :: tries(13*n_collectives)
   ! The arguments of a call.
   integer :: n_send, n_recv, root
   integer, dimension(0:ranks_max - 1) :: sends, recvs, places, bytes
   logical :: in_place
   HANDLE(MPI_Datatype) :: send_type, recv_type, send_types(0:ranks_max - 1), recv_types(0:ranks_max - 1)
   HANDLE(MPI_Op) :: op
   HANDLE(MPI_Comm) :: comm

   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, n, ierror)
   ! Errors without a communicator go to one of these two.
   call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
   call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
   n_answers = 0
   do mistake = 1, size(mistakes)
      do which = 1, n_collectives
         if (is_meant()) call try()
      end do
   end do
   if (rank > 0) then
      call MPI_Send(answers, size(answers), MPI_INTEGER, 0, 1, MPI_COMM_WORLD, ierror)
   else
      do source = 0, n - 1
         if (source > 0) call MPI_Recv(answers, size(answers), MPI_INTEGER, source, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
         do i = 1, n_answers
            print '(a, a, i0, a, i0, a, i0, a, i0)', trim(tries(i)), ' rank ', source, ': class ', answers(1, i), &
               ', result ', answers(2, i), ', right calls ', answers(3, i)
         end do
      end do
   end if
   call MPI_Finalize(ierror)

contains

   ! Whether the collective can be called with the mistake, and is to be.
   logical function is_meant()
      character(len=52) :: one, left_out
      is_meant = .true.
      select case (mistakes(mistake))
      case ('without-an-operation', 'with-no-such-operation', 'bits-of-doubles')
         is_meant = which <= reduce_scatter_block
      ! Of the side that every rank has: the root alone would notice, and the others wait for it.
      case ('without-a-send-type')
         is_meant = which >= allgather .and. which /= scatter .and. which /= scatterv
      case ('without-a-receive-type')
         is_meant = which >= allgather .and. which /= gather .and. which /= gatherv
      case ('root-beyond', 'root-negative')
         is_meant = any(rooted == which)
      case ('in-place-of-no-type')
         is_meant = which >= allgather
      case ('of-no-type-off-the-root')
         is_meant = which == gather .or. which == scatter .or. which == gatherv .or. which == scatterv
      end select
      one = trim(mistakes(mistake))//':'//trim(collectives(which))
      do i = 1, command_argument_count()
         call get_command_argument(i, left_out)
         is_meant = is_meant .and. one /= left_out
      end do
      if (is_meant) then
         n_answers = n_answers + 1
         tries(n_answers) = one
      end if
   end function

   subroutine try()
      integer :: class, code, once, right
      call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
      call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierror)
      right = 0
      do once = 1, 3
         call prepare()
         call make(code)
         right = right + code + modulo(received(), 9973)
      end do
      call prepare()
      call spoil()
      call make(code)
      class = MPI_SUCCESS
      if (code /= MPI_SUCCESS) call MPI_Error_class(code, class, ierror)
      answers(1, n_answers) = class
      answers(2, n_answers) = 0
      if (code == MPI_SUCCESS) answers(2, n_answers) = received()
      do once = 1, 3
         call prepare()
         call make(code)
         right = right + code + modulo(received(), 9973)
      end do
      answers(3, n_answers) = right
      ! The communicator is never freed: what a rank sent that another did not take must not be taken on the next one.
   end subroutine

   integer function received()
      if (which == bcast) then
         received = sum([(send(i)*modulo(i, 7), i=1, room)])
      else
         received = sum([(recv(i)*modulo(i, 7), i=1, room)])
      end if
   end function

   subroutine prepare()
      send = [(rank + i, i=1, room)]
      recv = [(-7*rank - i, i=1, room)]
      n_send = block
      n_recv = block
      root = n - 1
      sends = block
      recvs = block
      places = [(block*i, i=0, ranks_max - 1)]
      bytes = 4*places
      in_place = .false.
      send_type = MPI_INTEGER
      recv_type = MPI_INTEGER
      op = MPI_SUM
   end subroutine

   subroutine spoil()
      select case (mistakes(mistake))
      case ('without-a-type')
         send_type = MPI_DATATYPE_NULL
         recv_type = MPI_DATATYPE_NULL
      case ('without-a-send-type')
         send_type = MPI_DATATYPE_NULL
      case ('without-a-receive-type')
         recv_type = MPI_DATATYPE_NULL
      case ('of-no-such-type')
         send_type = NONE_OF(MPI_Datatype)
         recv_type = NONE_OF(MPI_Datatype)
      case ('negative-count')
         n_send = -3
         n_recv = -3
         sends = -3
         recvs = -3
      case ('without-an-operation')
         op = MPI_OP_NULL
      case ('with-no-such-operation')
         op = NONE_OF(MPI_Op)
      case ('bits-of-doubles')
         send_type = MPI_DOUBLE_PRECISION
         op = MPI_BXOR
      case ('root-beyond')
         root = n
      case ('root-negative')
         root = -7
      case ('in-place-of-no-type')
         ! What is in place has neither count nor type that anybody may look at.
         in_place = rank == root .or. .not. any(rooted == which)
         if (in_place .and. (which == scatter .or. which == scatterv)) then
            n_recv = -3
            recv_type = MPI_DATATYPE_NULL
         else if (in_place) then
            n_send = -3
            sends = -3
            send_type = MPI_DATATYPE_NULL
         end if
      case ('of-no-type-off-the-root')
         if (rank /= root .and. (which == gather .or. which == gatherv)) then
            n_recv = -3
            recvs = -3
            recv_type = MPI_DATATYPE_NULL
         else if (rank /= root) then
            n_send = -3
            sends = -3
            send_type = MPI_DATATYPE_NULL
         end if
      end select
   end subroutine

   subroutine make(code)
      integer, intent(out) :: code
      code = -1
      send_types = send_type
      recv_types = recv_type
      select case (which)
      case (allreduce)
         call MPI_Allreduce(send, recv, n_send, send_type, op, comm, code)
      case (reduce)
         call MPI_Reduce(send, recv, n_send, send_type, op, root, comm, code)
      case (scan)
         call MPI_Scan(send, recv, n_send, send_type, op, comm, code)
      case (exscan)
         call MPI_Exscan(send, recv, n_send, send_type, op, comm, code)
      case (reduce_scatter)
         call MPI_Reduce_scatter(send, recv, recvs, send_type, op, comm, code)
      case (reduce_scatter_block)
         call MPI_Reduce_scatter_block(send, recv, n_recv, send_type, op, comm, code)
      case (bcast)
         call MPI_Bcast(send, n_send, send_type, root, comm, code)
      case (allgather)
         if (in_place) then
            call MPI_Allgather(MPI_IN_PLACE, n_send, send_type, recv, n_recv, recv_type, comm, code)
         else
            call MPI_Allgather(send, n_send, send_type, recv, n_recv, recv_type, comm, code)
         end if
      case (alltoall)
         if (in_place) then
            call MPI_Alltoall(MPI_IN_PLACE, n_send, send_type, recv, n_recv, recv_type, comm, code)
         else
            call MPI_Alltoall(send, n_send, send_type, recv, n_recv, recv_type, comm, code)
         end if
      case (gather)
         if (in_place) then
            call MPI_Gather(MPI_IN_PLACE, n_send, send_type, recv, n_recv, recv_type, root, comm, code)
         else
            call MPI_Gather(send, n_send, send_type, recv, n_recv, recv_type, root, comm, code)
         end if
      case (scatter)
         if (in_place) then
            call MPI_Scatter(send, n_send, send_type, MPI_IN_PLACE, n_recv, recv_type, root, comm, code)
         else
            call MPI_Scatter(send, n_send, send_type, recv, n_recv, recv_type, root, comm, code)
         end if
      case (allgatherv)
         if (in_place) then
            call MPI_Allgatherv(MPI_IN_PLACE, n_send, send_type, recv, recvs, places, recv_type, comm, code)
         else
            call MPI_Allgatherv(send, n_send, send_type, recv, recvs, places, recv_type, comm, code)
         end if
      case (alltoallv)
         if (in_place) then
            call MPI_Alltoallv(MPI_IN_PLACE, sends, places, send_type, recv, recvs, places, recv_type, comm, code)
         else
            call MPI_Alltoallv(send, sends, places, send_type, recv, recvs, places, recv_type, comm, code)
         end if
      case (gatherv)
         if (in_place) then
            call MPI_Gatherv(MPI_IN_PLACE, n_send, send_type, recv, recvs, places, recv_type, root, comm, code)
         else
            call MPI_Gatherv(send, n_send, send_type, recv, recvs, places, recv_type, root, comm, code)
         end if
      case (scatterv)
         if (in_place) then
            call MPI_Scatterv(send, sends, places, send_type, MPI_IN_PLACE, n_recv, recv_type, root, comm, code)
         else
            call MPI_Scatterv(send, sends, places, send_type, recv, n_recv, recv_type, root, comm, code)
         end if
      case (alltoallw)
         if (in_place) then
            call MPI_Alltoallw(MPI_IN_PLACE, sends, bytes, send_types, recv, recvs, bytes, recv_types, comm, code)
         else
            call MPI_Alltoallw(send, sends, bytes, send_types, recv, recvs, bytes, recv_types, comm, code)
         end if
      end select
   end subroutine
end program
