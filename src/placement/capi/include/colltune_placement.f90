! The Fortran interface of colltune_placement.h, which is its documentation: compile this file with the
! program and link with -lcolltune_placement.
!
!   type(colltune_placement_problem) :: problem
!   real(c_double), target :: costs(6) = [3, 1, 1, 1, 2, 2]
!   integer(c_int32_t) :: owners(6)
!   problem%blocks = 6; problem%costs = c_loc(costs); problem%ranks = 2
!   if (colltune_place('lpt-swap', problem, owners) /= COLLTUNE_PLACEMENT_OK) print *, colltune_message()
!
! Ranks are counted from 0, as in MPI, and so are blocks in the arrays of the neighbour graph. Arrays
! that a problem points to need the attribute target. C's unsigned numbers are Fortran's signed ones of
! the same size.
module colltune_placement
  use, intrinsic :: iso_c_binding
  implicit none
  private

  public :: colltune_octant, colltune_link, colltune_machine, colltune_traffic
  public :: colltune_placement_problem, colltune_placement_certificate
  public :: colltune_place, colltune_certify, colltune_limit_migration, colltune_keys
  public :: colltune_hash, colltune_message

  integer(c_int), parameter, public :: COLLTUNE_PLACEMENT_OK = 0, COLLTUNE_PLACEMENT_NULL = 1, &
    COLLTUNE_PLACEMENT_VALUE = 2, COLLTUNE_PLACEMENT_NAME = 3, COLLTUNE_PLACEMENT_NEEDS = 4, &
    COLLTUNE_PLACEMENT_FAILED = 5, COLLTUNE_PLACEMENT_INTERNAL = 6

  type, bind(c) :: colltune_octant
    integer(c_int32_t) :: x = 0, y = 0, z = 0
    integer(c_int8_t) :: level = 0
  end type

  type, bind(c) :: colltune_link
    real(c_double) :: latency = 0, per_byte = 0
  end type

  type, bind(c) :: colltune_machine
    type(colltune_link) :: same_node, remote
  end type

  type, bind(c) :: colltune_traffic
    integer(c_int64_t) :: messages = 0, bytes = 0
  end type

  ! struct_size is set by colltune_place and the others.
  type, bind(c) :: colltune_placement_problem
    integer(c_size_t) :: struct_size = 0
    integer(c_size_t) :: blocks = 0
    type(c_ptr) :: costs = c_null_ptr
    integer(c_int32_t) :: ranks = 0
    integer(c_int32_t) :: ranks_per_node = 0
    type(c_ptr) :: octants = c_null_ptr
    integer(c_int8_t) :: dimensions = 0
    integer(c_int8_t) :: root_level = 0
    type(c_ptr) :: graph_offsets = c_null_ptr
    type(c_ptr) :: graph_neighbours = c_null_ptr
    type(c_ptr) :: graph_bytes = c_null_ptr
    integer(c_size_t) :: graph_edges = 0
    type(c_ptr) :: owners = c_null_ptr
    integer(c_int32_t) :: blocks_per_rank_max = 0
    integer(c_int64_t) :: bytes_per_block = 0
    type(c_ptr) :: machine = c_null_ptr
    integer(c_int32_t) :: threads = 0
    integer(c_int32_t) :: reserved = 0
    type(c_ptr) :: speeds = c_null_ptr
    integer(c_int32_t) :: matching = 0
    integer(c_int32_t) :: reserved_too = 0
    type(c_ptr) :: memory_of_blocks = c_null_ptr
    type(c_ptr) :: memory_of_ranks = c_null_ptr
  end type

  type, bind(c) :: colltune_placement_certificate
    integer(c_size_t) :: struct_size = 0
    real(c_double) :: makespan = 0, mean = 0, bound = 0, gap = 0
    integer(c_int32_t) :: optimal = 0, contiguity = 0
    integer(c_int32_t) :: blocks_per_rank_max = 0
    type(colltune_traffic) :: same_rank, same_node, remote
    real(c_double) :: curve_score = 0
    integer(c_int64_t) :: migrated_blocks = 0, migrated_bytes = 0
    integer(c_int64_t) :: hash = 0
    integer(c_int64_t) :: ranks_over_memory = 0, over_memory_max = 0
  end type

  interface
    integer(c_int) function c_place(policy, problem, owners, n_owners, certificate) &
        bind(c, name='colltune_placement_place')
      import
      character(kind=c_char), intent(in) :: policy(*)
      type(colltune_placement_problem), intent(in) :: problem
      integer(c_int32_t), intent(inout) :: owners(*)
      integer(c_size_t), value :: n_owners
      type(c_ptr), value :: certificate
    end function

    integer(c_int) function c_certify(problem, owners, n_owners, certificate) &
        bind(c, name='colltune_placement_certify')
      import
      type(colltune_placement_problem), intent(in) :: problem
      integer(c_int32_t), intent(in) :: owners(*)
      integer(c_size_t), value :: n_owners
      type(colltune_placement_certificate), intent(inout) :: certificate
    end function

    integer(c_int) function c_limit_migration(problem, proposed, n_owners, keep_fraction, blocks_max, &
        bytes_max, owners) bind(c, name='colltune_placement_limit_migration')
      import
      type(colltune_placement_problem), intent(in) :: problem
      integer(c_int32_t), intent(in) :: proposed(*)
      integer(c_size_t), value :: n_owners
      real(c_double), value :: keep_fraction
      integer(c_int64_t), value :: blocks_max, bytes_max
      integer(c_int32_t), intent(inout) :: owners(*)
    end function

    integer(c_int) function c_keys(curve, dimensions, octants, n, keys) &
        bind(c, name='colltune_placement_keys')
      import
      character(kind=c_char), intent(in) :: curve(*)
      integer(c_int8_t), value :: dimensions
      type(colltune_octant), intent(in) :: octants(*)
      integer(c_size_t), value :: n
      integer(c_int64_t), intent(inout) :: keys(*)
    end function

    integer(c_int64_t) function c_hash(owners, n) bind(c, name='colltune_placement_hash')
      import
      integer(c_int32_t), intent(in) :: owners(*)
      integer(c_size_t), value :: n
    end function

    type(c_ptr) function c_message() bind(c, name='colltune_placement_message')
      import
    end function
  end interface

contains

  ! Chooses the owners by a policy; the certificate may be left out.
  integer(c_int) function colltune_place(policy, problem, owners, certificate) result(code)
    character(*), intent(in) :: policy
    type(colltune_placement_problem), intent(inout) :: problem
    integer(c_int32_t), intent(inout) :: owners(:)
    type(colltune_placement_certificate), intent(inout), target, optional :: certificate
    type(c_ptr) :: judged
    integer(c_int32_t) :: chosen(size(owners))
    problem%struct_size = c_sizeof(problem)
    judged = c_null_ptr
    if (present(certificate)) then
      certificate%struct_size = c_sizeof(certificate)
      judged = c_loc(certificate)
    end if
    code = c_place(policy // c_null_char, problem, chosen, size(owners, kind=c_size_t), judged)
    if (code == COLLTUNE_PLACEMENT_OK) owners = chosen
  end function

  integer(c_int) function colltune_certify(problem, owners, certificate) result(code)
    type(colltune_placement_problem), intent(inout) :: problem
    integer(c_int32_t), intent(in) :: owners(:)
    type(colltune_placement_certificate), intent(inout) :: certificate
    problem%struct_size = c_sizeof(problem)
    certificate%struct_size = c_sizeof(certificate)
    code = c_certify(problem, owners, size(owners, kind=c_size_t), certificate)
  end function

  ! A limit that is left out does not bind.
  integer(c_int) function colltune_limit_migration(problem, proposed, owners, keep_fraction, blocks_max, &
      bytes_max) result(code)
    type(colltune_placement_problem), intent(inout) :: problem
    integer(c_int32_t), intent(in) :: proposed(:)
    integer(c_int32_t), intent(inout) :: owners(:)
    real(c_double), intent(in), optional :: keep_fraction
    integer(c_int64_t), intent(in), optional :: blocks_max, bytes_max
    real(c_double) :: keep
    integer(c_int64_t) :: blocks, bytes
    integer(c_int32_t) :: chosen(size(proposed))
    if (size(owners) /= size(proposed)) then
      code = COLLTUNE_PLACEMENT_VALUE
      return
    end if
    keep = 0
    blocks = -1
    bytes = -1
    if (present(keep_fraction)) keep = keep_fraction
    if (present(blocks_max)) blocks = blocks_max
    if (present(bytes_max)) bytes = bytes_max
    problem%struct_size = c_sizeof(problem)
    code = c_limit_migration(problem, proposed, size(proposed, kind=c_size_t), keep, blocks, bytes, chosen)
    if (code == COLLTUNE_PLACEMENT_OK) owners = chosen
  end function

  integer(c_int) function colltune_keys(curve, dimensions, octants, keys) result(code)
    character(*), intent(in) :: curve
    integer, intent(in) :: dimensions
    type(colltune_octant), intent(in) :: octants(:)
    integer(c_int64_t), intent(inout) :: keys(:)
    integer(c_int64_t) :: found(size(octants))
    if (size(keys) /= size(octants)) then
      code = COLLTUNE_PLACEMENT_VALUE
      return
    end if
    code = c_keys(curve // c_null_char, int(dimensions, c_int8_t), octants, &
      size(octants, kind=c_size_t), found)
    if (code == COLLTUNE_PLACEMENT_OK) keys = found
  end function

  integer(c_int64_t) function colltune_hash(owners) result(hash)
    integer(c_int32_t), intent(in) :: owners(:)
    hash = c_hash(owners, size(owners, kind=c_size_t))
  end function

  ! What went wrong in this thread's last call; reads after "failed to".
  function colltune_message() result(message)
    character(:), allocatable :: message
    character(kind=c_char), pointer :: text(:)
    type(c_ptr) :: start
    integer :: length
    start = c_message()
    call c_f_pointer(start, text, [4096])
    length = 0
    do while (length < 4096)
      if (text(length + 1) == c_null_char) exit
      length = length + 1
    end do
    allocate (character(length) :: message)
    block
      integer :: i
      do i = 1, length
        message(i:i) = text(i)
      end do
    end block
  end function
end module
