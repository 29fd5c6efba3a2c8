! Choices of a program, called levers, that colltune tunes together with the program's collectives: see colltune.h, whose
! functions these are.
!
!   use colltune
!   character(len=13) :: arms(3) = [character(len=13) :: "contiguous", "knapsack", "space-filling"]
!   do
!     arm = colltune_choose(comm, "placement", arms, blocks_per_rank)    ! 1, 2 or 3
!     ...
!     call colltune_done(comm, "placement", cells_computed)
!   end do
!
! Here communicators are integers, as in `use mpi` and mpif.h. Callers with `use mpi_f08` compile colltune_f08.f90, too, and
! `use colltune_f08`. Nothing is linked, and no module of MPI is needed; blanks at the end of an arm do not count.
module colltune
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private
  public :: colltune_choose, colltune_done

  interface colltune_choose
    module procedure choose_by_handle
  end interface

  interface colltune_done
    module procedure done_by_handle
  end interface

  interface
    function c_dlopen(name, flags) bind(c, name="dlopen") result(program)
      import
      type(c_ptr), value :: name
      integer(c_int), value :: flags
      type(c_ptr) :: program
    end function
    function c_dlsym(program, name) bind(c, name="dlsym") result(symbol)
      import
      type(c_ptr), value :: program
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: symbol
    end function
  end interface

  ! A communicator of C is a pointer in some libraries and a number in others: a whole register serves both.
  abstract interface
    function choose_function(comm, lever, n_arms, arms, size) bind(c) result(arm)
      import
      integer(c_intptr_t), value :: comm
      character(kind=c_char), intent(in) :: lever(*)
      integer(c_int), value :: n_arms
      type(c_ptr), intent(in) :: arms(*)
      real(c_double), value :: size
      integer(c_int) :: arm
    end function
    subroutine done_function(comm, lever, work) bind(c)
      import
      integer(c_intptr_t), value :: comm
      character(kind=c_char), intent(in) :: lever(*)
      real(c_double), value :: work
    end subroutine
    function from_fortran(comm) bind(c) result(handle)
      import
      integer(c_int), value :: comm
      integer(c_intptr_t) :: handle
    end function
    function rank_function(comm, rank) bind(c) result(code)
      import
      integer(c_intptr_t), value :: comm
      integer(c_int), intent(out) :: rank
      integer(c_int) :: code
    end function
  end interface

  ! Levers of which it has been said that an arm that is named is not offered.
  character(len=:), allocatable, save :: said

contains

  ! The arm of `lever` to use from now on: its place in `arms`, from 1. Collective over `comm`: every rank passes the same
  ! lever, arms and size, and gets the same answer. `size` is what the best arm may depend on beside nodes and ranks per
  ! node, such as blocks per rank. Without the tuner the first arm, or the one that COLLTUNE_LEVERS names.
  function choose_by_handle(comm, lever, arms, size) result(arm)
    integer, intent(in) :: comm
    character(len=*), intent(in) :: lever, arms(:)
    real(c_double), intent(in) :: size
    integer :: arm, i, j, n
    type(c_funptr) :: symbol
    procedure(choose_function), pointer :: choose
    character(kind=c_char), allocatable, target :: texts(:, :)
    type(c_ptr), allocatable :: addresses(:)

    symbol = function_named("colltune_choose")
    if (.not. c_associated(symbol)) then
      arm = named(comm, lever, arms)
      return
    end if
    call c_f_procpointer(symbol, choose)
    n = ubound(arms, 1)
    allocate (texts(len(arms) + 1, n), addresses(n))
    do i = 1, n
      do j = 1, len_trim(arms(i))
        texts(j, i) = arms(i)(j:j)
      end do
      texts(len_trim(arms(i)) + 1, i) = c_null_char
      addresses(i) = c_loc(texts(1, i))
    end do
    arm = 1 + choose(handle_of(comm), trim(lever)//c_null_char, int(n, c_int), addresses, size)
  end function

  ! The epoch since the last colltune_choose of this lever is over, and this rank did so much work in it, in any unit that
  ! does not change, neither with the arm. The ranks' work is added up. Collective over `comm`.
  subroutine done_by_handle(comm, lever, work)
    integer, intent(in) :: comm
    character(len=*), intent(in) :: lever
    real(c_double), intent(in) :: work
    type(c_funptr) :: symbol
    procedure(done_function), pointer :: done

    symbol = function_named("colltune_done")
    if (.not. c_associated(symbol)) return
    call c_f_procpointer(symbol, done)
    call done(handle_of(comm), trim(lever)//c_null_char, work)
  end subroutine

  ! A function that the job was started with, if it was.
  function function_named(name) result(symbol)
    character(len=*), intent(in) :: name
    type(c_funptr) :: symbol
    type(c_ptr), save :: program = c_null_ptr
    integer(c_int), parameter :: rtld_lazy = 1

    if (.not. c_associated(program)) program = c_dlopen(c_null_ptr, rtld_lazy)
    symbol = c_dlsym(program, name//c_null_char)
  end function

  ! C's handle of a communicator. Libraries that have no function for this use the same number in both languages.
  function handle_of(comm) result(handle)
    integer, intent(in) :: comm
    integer(c_intptr_t) :: handle
    type(c_funptr) :: symbol
    procedure(from_fortran), pointer :: convert

    handle = int(comm, c_intptr_t)
    symbol = function_named("MPI_Comm_f2c")
    if (.not. c_associated(symbol)) return
    call c_f_procpointer(symbol, convert)
    handle = convert(int(comm, c_int))
  end function

  ! The arm that COLLTUNE_LEVERS names, or the first one.
  function named(comm, lever, arms) result(arm)
    integer, intent(in) :: comm
    character(len=*), intent(in) :: lever, arms(:)
    integer :: arm, length, at, equals
    character(len=:), allocatable :: text, part

    arm = 1
    call get_environment_variable("COLLTUNE_LEVERS", length=length)
    if (length == 0) return
    allocate (character(len=length) :: text)
    call get_environment_variable("COLLTUNE_LEVERS", text)
    at = 1
    do while (at <= length)
      call next_part(text, at, part)
      equals = index(part, "=")
      if (equals == 0) cycle
      if (trim(adjustl(part(:equals - 1))) /= trim(lever)) cycle
      part = part(equals + 1:)
      do arm = 1, ubound(arms, 1)
        if (arms(arm) == part) exit
      end do
      if (arm <= ubound(arms, 1)) cycle
      arm = 1
      call not_offered(comm, trim(lever), part)
    end do
  end function

  ! The part of `text` from `at` to before the next `;`, without the backslashes; `at` is then behind that.
  subroutine next_part(text, at, part)
    character(len=*), intent(in) :: text
    integer, intent(inout) :: at
    character(len=:), allocatable, intent(out) :: part

    part = ""
    do while (at <= len(text))
      if (text(at:at) == ";") exit
      if (text(at:at) == "\" .and. at < len(text)) then
        if (scan(text(at + 1:at + 1), "\;") == 1) at = at + 1
      end if
      part = part//text(at:at)
      at = at + 1
    end do
    at = at + 1
  end subroutine

  ! Says on one rank, once for each lever, that what the variable names is not offered.
  subroutine not_offered(comm, lever, arm)
    integer, intent(in) :: comm
    character(len=*), intent(in) :: lever, arm
    type(c_funptr) :: symbol
    procedure(rank_function), pointer :: rank_of
    integer(c_int) :: rank, code

    if (.not. allocated(said)) said = ";"
    if (index(said, ";"//lever//";") > 0) return
    said = said//lever//";"
    symbol = function_named("MPI_Comm_rank")
    if (.not. c_associated(symbol)) return
    call c_f_procpointer(symbol, rank_of)
    code = rank_of(handle_of(comm), rank)
    if (code /= 0 .or. rank /= 0) return
    write (error_unit, "(5a)") "colltune: COLLTUNE_LEVERS names ", lever, "=", arm, &
      ", which the program does not offer: its first arm is used"
  end subroutine
end module
