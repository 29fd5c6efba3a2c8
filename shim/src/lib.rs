//! libcolltune.so: catches MPI collectives through the profiling interface.
//!
//! The shim is loaded into every process of a job, the shells and launchers among them, so it
//! needs no MPI symbol and does nothing before `MPI_Init`. Modules stand in the order in which a
//! job meets them: [`abi`] and [`library`] find the MPI library that is already loaded, [`start`] agrees with the
//! other ranks ([`handshake`]) and hands out what rank 0 read. Then each call goes through [`intercept`], [`fence`],
//! [`forms`], [`communicator`], [`tune`], [`steer`], [`p2p`] or [`node`], and [`recorder`]. Nonblocking, persistent
//! and neighbourhood calls pass through and are watched ([`watch`], [`pending`]).

mod abi;
mod library;
mod limits;
mod world;

mod handout;
mod handshake;
mod site;
mod start;
mod switch;

mod account;
mod arguments;
mod call_log;
mod clock;
mod code_pages;
mod communicator;
mod context;
mod fault_tolerance;
mod fence;
mod fixed_order;
mod flight;
mod floating;
mod forms;
#[cfg(not(mpi = "standard"))]
mod fortran;
mod frames;
mod gap;
mod gpu;
mod incoming;
mod intercept;
mod lever;
mod levers;
mod members;
mod messages;
mod names;
mod node;
mod own;
mod p2p;
mod padded;
mod passing_calls;
mod pending;
mod private;
mod processors;
mod quiet;
mod recorder;
mod scratch;
mod spending;
mod steer;
mod tune;
mod watch;

mod warn;
