! Uses the Fortran module as a program would; prints the owners of the policies that are named, by hash.
program from_fortran
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use colltune_placement
  implicit none
  real(c_double), target :: costs(8) = [3, 1, 1, 1, 2, 2, 4, 2]
  integer(c_int32_t) :: owners(8), limited(8)
  integer(c_int32_t), target :: before(8) = 0
  type(colltune_octant), target :: octants(8)
  type(colltune_machine), target :: machine
  integer(c_int64_t), target :: offsets(9) = [0, 1, 2, 3, 4, 5, 6, 7, 7], bytes(7) = 9
  integer(c_int32_t), target :: neighbours(7) = [1, 2, 3, 4, 5, 6, 7]
  integer(c_int64_t) :: keys(8)
  type(colltune_placement_problem) :: problem
  type(colltune_placement_certificate) :: found, again
  character(64) :: policy
  integer :: i, code

  do i = 0, 7
    octants(i + 1)%x = ishft(iand(i, 1), 20)
    octants(i + 1)%y = ishft(iand(ishft(i, -1), 1), 20)
    octants(i + 1)%z = ishft(ishft(i, -2), 20)
    octants(i + 1)%level = 1_c_int8_t
  end do
  machine%same_node%latency = 1d-3
  machine%remote%latency = 1d-2

  problem%blocks = 8
  problem%costs = c_loc(costs)
  problem%ranks = 4
  problem%ranks_per_node = 2
  problem%octants = c_loc(octants)
  problem%dimensions = 3_c_int8_t
  problem%graph_offsets = c_loc(offsets)
  problem%graph_neighbours = c_loc(neighbours)
  problem%graph_bytes = c_loc(bytes)
  problem%graph_edges = 7
  problem%owners = c_loc(before)
  problem%bytes_per_block = 100
  problem%machine = c_loc(machine)

  call expect(colltune_place('lpt-swap', problem, owners, found) == COLLTUNE_PLACEMENT_OK, 'place')
  call expect(found%makespan == 4 .and. found%bound == 4 .and. found%optimal == 1, 'the certificate')
  call expect(found%same_rank%messages + found%same_node%messages + found%remote%messages == 7, 'messages')
  call expect(found%migrated_bytes == 100 * found%migrated_blocks .and. found%migrated_blocks > 0, 'migration')
  call expect(found%hash == colltune_hash(owners), 'the hash')
  call expect(colltune_certify(problem, owners, again) == COLLTUNE_PLACEMENT_OK, 'certify')
  call expect(again%makespan == found%makespan .and. again%hash == found%hash, 'the same again')
  call expect(colltune_limit_migration(problem, owners, limited, keep_fraction=0.5d0) == 0, 'limit')
  call expect(count(limited /= before) == 4, 'half of the blocks move')
  call expect(colltune_keys('morton', 3, octants, keys) == COLLTUNE_PLACEMENT_OK, 'keys')
  do i = 0, 7
    call expect(keys(i + 1) == ishft(int(i, c_int64_t), 60), 'the Morton order')
  end do
  costs(6) = -1
  call expect(colltune_place('lpt', problem, owners) == COLLTUNE_PLACEMENT_VALUE, 'a negative cost')
  call expect(index(colltune_message(), 'block 5') > 0, 'the block is named')
  costs(6) = 2

  do
    read (*, '(a)', iostat=code) policy
    if (code /= 0) exit
    call expect(colltune_place(trim(policy), problem, owners) == COLLTUNE_PLACEMENT_OK, trim(policy))
    print '(a, 1x, z16.16)', trim(policy), colltune_hash(owners)
  end do

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) then
      write (error_unit, '(4a)') 'not as expected: ', what, '; failed to ', colltune_message()
      stop 1
    end if
  end subroutine
end program
