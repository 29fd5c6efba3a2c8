//! What is best in the databases that are published.

use colltune_core::collective::Collective;

/// From how many bytes on which variant is best.
pub type Winners<'a> = &'a [(Collective, &'a [(u64, &'a str)])];
