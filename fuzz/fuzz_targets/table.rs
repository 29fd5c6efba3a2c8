//! Tables of cells as rank 0 hands them out: what is decoded is encoded as it was.
//!
//! Only rank 0 of the same job writes them, so ranks decode them without a limit; here an invalid length would end
//! the process.
#![no_main]

use colltune_core::decide::table::CellTable;
use libfuzzer_sys::fuzz_target;

const BYTES_MAX: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let config = bincode::config::standard().with_limit::<BYTES_MAX>();
    let Ok((table, _)) = bincode::decode_from_slice::<CellTable, _>(bytes, config) else {
        return;
    };
    // Numbers may be none, so bytes are compared.
    let encoded = bincode::encode_to_vec(&table, config).expect("numbers and a name");
    let (again, _) =
        bincode::decode_from_slice::<CellTable, _>(&encoded, config).expect("it was written by us");
    assert_eq!(
        bincode::encode_to_vec(&again, config).expect("numbers and a name"),
        encoded
    );
});
