! The functions of colltune.f90 for callers with `use mpi_f08`, whose communicators are a type of their own.
module colltune_f08
  use, intrinsic :: iso_c_binding, only: c_double
  use mpi_f08, only: MPI_Comm
  use colltune, only: colltune_choose, colltune_done
  implicit none
  private
  public :: colltune_choose, colltune_done

  interface colltune_choose
    module procedure choose_by_comm
  end interface

  interface colltune_done
    module procedure done_by_comm
  end interface

contains

  function choose_by_comm(comm, lever, arms, size) result(arm)
    type(MPI_Comm), intent(in) :: comm
    character(len=*), intent(in) :: lever, arms(:)
    real(c_double), intent(in) :: size
    integer :: arm

    arm = colltune_choose(comm%MPI_VAL, lever, arms, size)
  end function

  subroutine done_by_comm(comm, lever, work)
    type(MPI_Comm), intent(in) :: comm
    character(len=*), intent(in) :: lever
    real(c_double), intent(in) :: work

    call colltune_done(comm%MPI_VAL, lever, work)
  end subroutine
end module
