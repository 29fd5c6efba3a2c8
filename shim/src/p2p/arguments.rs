//! What the application passed, and what this rank makes of it: units, lengths, user's buffers.

use std::ffi::{c_int, c_void};

use colltune_core::collective::Collective;

use crate::abi::{self, Aint, Datatype, Op, is_in_place};
use crate::tune::Tuner;

/// The arguments of a call, in the shape of its collective.
#[derive(Clone, Copy)]
pub enum Arguments {
    /// Allreduce, scan, exscan and reduce_scatter_block, whose root is 0, and reduce. Of
    /// reduce_scatter_block `count` is one block's.
    Reduction {
        send: *const c_void,
        recv: *mut c_void,
        count: i64,
        datatype: Datatype,
        op: Op,
        root: c_int,
    },
    Bcast {
        buffer: *mut c_void,
        count: i64,
        datatype: Datatype,
        root: c_int,
    },
    /// Allgather and alltoall, whose root is 0, gather and scatter.
    Blocks {
        send: *const c_void,
        send_count: i64,
        send_type: Datatype,
        recv: *mut c_void,
        recv_count: i64,
        recv_type: Datatype,
        root: c_int,
    },
    /// The barrier, and collectives with lists of counts, which the library alone runs.
    Nothing,
}

/// A part of the application's memory: so many elements of a datatype.
#[derive(Clone, Copy)]
pub struct Memory {
    pub start: *mut u8,
    pub count: u64,
    pub datatype: Datatype,
    /// Whether it is the packed bytes of its elements as it is.
    pub plain: bool,
}

/// What lengths are counted in, and how a unit lies in memory.
#[derive(Clone, Copy)]
pub struct Unit {
    pub datatype: Datatype,
    /// From one unit to the next.
    pub stride: Aint,
    /// Where a unit's first byte lies, and how many bytes further its last one ends.
    pub true_lower: Aint,
    pub true_extent: Aint,
    /// Whether units can be copied as bytes.
    pub plain: bool,
    pub combine: Option<Combine>,
}

/// The operation of a reduction.
#[derive(Clone, Copy)]
pub struct Combine {
    pub op: Op,
    pub commutative: bool,
}

/// What a schedule's input is.
#[derive(Clone, Copy)]
pub enum Input {
    /// There is none on this rank.
    Nothing,
    User(Memory),
    /// The same memory as the output, from this unit on.
    InOutput {
        from: u64,
    },
}

/// What a schedule's output is.
#[derive(Clone, Copy)]
pub enum Output {
    /// There is none on this rank.
    Nothing,
    /// The same memory as the input's own block, where it is already.
    InInput,
    User {
        memory: Memory,
        /// What of it must be there before the schedule begins.
        before: Before,
        /// Whether the schedule writes it.
        written: bool,
    },
}

/// What of an output the caller filled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Nothing,
    /// This rank's block.
    OwnBlock,
    All,
}

/// One call as this rank sees it.
#[derive(Clone, Copy)]
pub struct View {
    pub root: usize,
    pub unit: Unit,
    /// Units of one block.
    pub block: u64,
    /// Units of the input: the own block of an allgather, else the message.
    pub input_units: u64,
    pub input: Input,
    pub output: Output,
}

/// Who takes part.
#[derive(Clone, Copy)]
pub struct Members {
    pub rank: usize,
    pub n_ranks: usize,
}

impl Arguments {
    /// `None` where an argument is wrong: the library shall say so, as it would without us.
    /// `bytes` is the message size by which all ranks know the call.
    pub fn view(
        &self,
        tuner: &Tuner,
        collective: Collective,
        bytes: u64,
        members: Members,
    ) -> Option<View> {
        match collective {
            Collective::Allreduce | Collective::Scan => {
                self.reduction(tuner, Gets::Everywhere, members)
            }
            Collective::Reduce => self.reduction(tuner, Gets::AtRoot, members),
            Collective::Exscan => self.reduction(tuner, Gets::AboveFirst, members),
            Collective::ReduceScatterBlock => self.reduction(tuner, Gets::OneBlock, members),
            Collective::Bcast => self.bcast(tuner, bytes, members),
            Collective::Allgather => self.blocks(tuner, Blocks::Own, bytes, members),
            Collective::Alltoall => self.blocks(tuner, Blocks::All, bytes, members),
            Collective::Gather => self.gather(tuner, bytes, members),
            Collective::Scatter => self.scatter(tuner, bytes, members),
            // They have no schedules in the catalogue (`Pattern::of`).
            _ => None,
        }
    }

    fn reduction(&self, tuner: &Tuner, result: Gets, members: Members) -> Option<View> {
        let Arguments::Reduction {
            send,
            recv,
            count,
            datatype,
            op,
            root,
        } = *self
        else {
            return None;
        };
        let root = members.root(root)?;
        let unit = tuner.element(datatype, op)?;
        let memory = |start: *mut c_void| tuner.memory(start, count, datatype);
        let blocks = match result {
            Gets::OneBlock => members.n_ranks as u64,
            _ => 1,
        };
        let input_units = blocks.checked_mul(count as u64)?;
        let view = |input, output| View {
            root,
            unit,
            block: count as u64,
            input_units,
            input,
            output,
        };
        let has_result = match result {
            Gets::Everywhere | Gets::OneBlock => true,
            Gets::AtRoot => members.rank == root,
            // Where there is none the buffer need not be one.
            Gets::AboveFirst => members.rank > 0 || is_in_place(send),
        };
        if !has_result {
            let input = Input::User(memory(send.cast_mut())?);
            return Some(view(input, Output::Nothing));
        }
        let alias = send == recv.cast_const();
        let in_place = is_in_place(send) || (alias && ALIASES);
        let (input, before) = if in_place {
            (Input::InOutput { from: 0 }, Before::All)
        } else {
            let memory = memory(send.cast_mut()).filter(|_| !alias)?;
            (Input::User(memory), Before::Nothing)
        };
        let output = Output::User {
            memory: memory(recv)?,
            before,
            written: true,
        };
        Some(view(input, output))
    }

    fn bcast(&self, tuner: &Tuner, bytes: u64, members: Members) -> Option<View> {
        let Arguments::Bcast {
            buffer,
            count,
            datatype,
            root,
        } = *self
        else {
            return None;
        };
        let root = members.root(root)?;
        let is_root = members.rank == root;
        Some(View {
            root,
            unit: tuner.byte(),
            block: bytes,
            input_units: 0,
            input: Input::Nothing,
            output: Output::User {
                memory: tuner.memory(buffer, count, datatype)?,
                before: if is_root {
                    Before::All
                } else {
                    Before::Nothing
                },
                written: !is_root,
            },
        })
    }

    fn gather(&self, tuner: &Tuner, bytes: u64, members: Members) -> Option<View> {
        let Arguments::Blocks {
            send,
            send_count,
            send_type,
            recv,
            recv_count,
            recv_type,
            root,
        } = *self
        else {
            return None;
        };
        let root = members.root(root)?;
        let from = members.rank as u64 * bytes;
        let in_place = members.rank == root && is_in_place(send);
        let input = if in_place {
            Input::InOutput { from }
        } else {
            tuner.given(send.cast_mut(), send_count, send_type, bytes)?
        };
        let output = if members.rank == root {
            let count = recv_count.checked_mul(members.n_ranks as i64)?;
            Output::User {
                memory: tuner.memory(recv, count, recv_type)?,
                before: if in_place {
                    Before::OwnBlock
                } else {
                    Before::Nothing
                },
                written: true,
            }
        } else {
            Output::Nothing
        };
        Some(View {
            root,
            unit: tuner.byte(),
            block: bytes,
            input_units: bytes,
            input,
            output,
        })
    }

    fn scatter(&self, tuner: &Tuner, bytes: u64, members: Members) -> Option<View> {
        let Arguments::Blocks {
            send,
            send_count,
            send_type,
            recv,
            recv_count,
            recv_type,
            root,
        } = *self
        else {
            return None;
        };
        let root = members.root(root)?;
        let n = members.n_ranks as u64;
        let input_units = bytes.checked_mul(n)?;
        let input = if members.rank == root {
            let count = send_count.checked_mul(n as i64)?;
            tuner.given(send.cast_mut(), count, send_type, input_units)?
        } else {
            Input::Nothing
        };
        let output = if members.rank == root && is_in_place(recv) {
            Output::InInput
        } else {
            Output::User {
                memory: tuner.memory(recv, recv_count, recv_type)?,
                before: Before::Nothing,
                written: true,
            }
        };
        Some(View {
            root,
            unit: tuner.byte(),
            block: bytes,
            input_units,
            input,
            output,
        })
    }

    fn blocks(
        &self,
        tuner: &Tuner,
        contributes: Blocks,
        bytes: u64,
        members: Members,
    ) -> Option<View> {
        let Arguments::Blocks {
            send,
            send_count,
            send_type,
            recv,
            recv_count,
            recv_type,
            ..
        } = *self
        else {
            return None;
        };
        let n = members.n_ranks as u64;
        let output = tuner.memory(recv, recv_count.checked_mul(n as i64)?, recv_type)?;
        let (blocks, from, before) = match contributes {
            Blocks::Own => (1, members.rank as u64 * bytes, Before::OwnBlock),
            Blocks::All => (n, 0, Before::All),
        };
        let input_units = bytes.checked_mul(blocks)?;
        let alias = match contributes {
            Blocks::Own if ALIASES && output.plain => {
                send.cast::<u8>() == output.start.wrapping_add(from as usize).cast_const()
            }
            // Packed bytes lie elsewhere in any case.
            Blocks::Own if ALIASES => false,
            _ => send == recv.cast_const(),
        };
        let (input, before) = if is_in_place(send) || (alias && ALIASES) {
            (Input::InOutput { from }, before)
        } else {
            let count = send_count.checked_mul(blocks as i64)?;
            let memory = tuner.memory(send.cast_mut(), count, send_type)?;
            if tuner.packed_bytes(&memory)? != input_units || alias {
                return None;
            }
            (Input::User(memory), Before::Nothing)
        };
        Some(View {
            root: 0,
            unit: tuner.byte(),
            block: bytes,
            input_units,
            input,
            output: Output::User {
                memory: output,
                before,
                written: true,
            },
        })
    }
}

/// Which ranks get which result of a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gets {
    Everywhere,
    AtRoot,
    /// Every rank but the first.
    AboveFirst,
    /// Every rank its block; the count is a block's.
    OneBlock,
}

/// What each rank hands over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blocks {
    /// Its own block, as in allgather.
    Own,
    /// One for each rank, as in alltoall.
    All,
}

impl Members {
    fn root(&self, root: c_int) -> Option<usize> {
        usize::try_from(root)
            .ok()
            .filter(|&root| root < self.n_ranks)
    }
}

/// Whether the library takes the same buffer twice for a call in place. MPICH refuses it, and
/// shall say so; in Open MPI such programs run, and a rank that alone ran `default` would hang them.
const ALIASES: bool = cfg!(mpi = "openmpi");

impl Tuner {
    /// `None` for a buffer that cannot be one. The null pointer is MPI_BOTTOM, which only derived
    /// types can stand on.
    fn memory(&self, start: *mut c_void, count: i64, datatype: Datatype) -> Option<Memory> {
        let plain = self.types.get(datatype).is_some();
        if is_in_place(start) || (start.is_null() && plain) {
            return None;
        }
        if !plain && !self.is_usable(datatype) {
            return None;
        }
        Some(Memory {
            start: start.cast(),
            count: u64::try_from(count).ok()?,
            datatype,
            plain,
        })
    }

    /// What a rank hands over, if it is `bytes` packed bytes.
    fn given(
        &self,
        start: *mut c_void,
        count: i64,
        datatype: Datatype,
        bytes: u64,
    ) -> Option<Input> {
        let memory = self.memory(start, count, datatype)?;
        (self.packed_bytes(&memory)? == bytes).then_some(Input::User(memory))
    }

    /// Whether the library takes a derived type in a message: it is committed. Asked by packing
    /// nothing, on a communicator that returns errors.
    fn is_usable(&self, datatype: Datatype) -> bool {
        let Some(comm) = self.p2p.comm() else {
            return false;
        };
        let (mut nothing, mut position) = ([0u64; 2], 0);
        let place = nothing.as_mut_ptr().cast::<c_void>();
        abi::bits(datatype) != abi::bits(self.handles.datatype_null)
            // SAFETY: no element is read, and no byte written.
            && unsafe { (self.pmpi.pack)(place, 0, datatype, place, 0, &mut position, comm) }
                == abi::SUCCESS
    }

    /// The bytes that a part of the application's memory packs into.
    pub fn packed_bytes(&self, memory: &Memory) -> Option<u64> {
        let size = match self.types.get(memory.datatype) {
            Some(facts) => facts.size.into(),
            None => {
                let mut size = 0;
                // SAFETY: the application passed the handle as a datatype.
                let code = unsafe { (self.pmpi.type_size)(memory.datatype, &mut size) };
                u64::try_from(size).ok().filter(|_| code == abi::SUCCESS)?
            }
        };
        memory.count.checked_mul(size)
    }

    fn byte(&self) -> Unit {
        Unit {
            datatype: self.handles.byte,
            stride: 1,
            true_lower: 0,
            true_extent: 1,
            plain: true,
            combine: None,
        }
    }

    fn element(&self, datatype: Datatype, op: Op) -> Option<Unit> {
        let combine = Combine {
            op,
            commutative: self.ops.get(op).is_some() || self.is_commutative(op),
        };
        if let Some(facts) = self.types.get(datatype) {
            let size = facts.size as Aint;
            return Some(Unit {
                datatype,
                stride: size,
                true_lower: 0,
                true_extent: size,
                plain: true,
                combine: Some(combine),
            });
        }
        let (mut lower, mut stride, mut true_lower, mut true_extent) = (0, 0, 0, 0);
        // SAFETY: the application passed the handle as a datatype; each call writes two numbers.
        let codes = unsafe {
            [
                (self.pmpi.type_get_extent)(datatype, &mut lower, &mut stride),
                (self.pmpi.type_get_true_extent)(datatype, &mut true_lower, &mut true_extent),
            ]
        };
        (codes == [abi::SUCCESS; 2]).then_some(Unit {
            datatype,
            stride,
            true_lower,
            true_extent,
            plain: false,
            combine: Some(combine),
        })
    }

    /// Whether our reductions may combine such elements: the standard defines the predefined
    /// operation on the type, or the operation is the program's own. Otherwise the library shall
    /// report the error before anything is sent.
    pub fn combines(&self, datatype: Datatype, op: Op) -> bool {
        match self.ops.get(op) {
            None => true,
            Some(abi::Combines::Located) => self.pairs.get(datatype).is_some(),
            Some(combines) => self
                .types
                .get(datatype)
                .is_some_and(|facts| combines.takes(facts.sort)),
        }
    }
}
