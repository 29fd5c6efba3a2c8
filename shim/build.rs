//! Asks the MPI library's own header what its constants are.
//!
//! A predefined handle is a number in MPICH (`((MPI_Comm)0x44000000)`) and the address of a
//! variable in Open MPI (`((MPI_Comm)((void *)&(ompi_mpi_comm_world)))`). The preprocessor tells
//! which; addresses are looked up at run time by name, so that the shim needs no MPI symbol.

#[path = "stamp.rs"]
mod stamp;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

const HANDLES: [&str; 15] = [
    "MPI_COMM_WORLD",
    "MPI_COMM_SELF",
    "MPI_COMM_NULL",
    "MPI_DATATYPE_NULL",
    "MPI_OP_NULL",
    "MPI_REPLACE",
    "MPI_NO_OP",
    "MPI_INFO_NULL",
    "MPI_ERRORS_RETURN",
    "MPI_MAX",
    "MPI_SUM",
    "MPI_BYTE",
    "MPI_UINT64_T",
    "MPI_INTEGER",
    "MPI_REQUEST_NULL",
];
/// Candidates: the library says which of them it has, and what they are. Open MPI counts its own, so that
/// there the list stays unread.
const DATATYPES: [&str; 72] = [
    "MPI_CHAR",
    "MPI_SIGNED_CHAR",
    "MPI_UNSIGNED_CHAR",
    "MPI_BYTE",
    "MPI_WCHAR",
    "MPI_SHORT",
    "MPI_UNSIGNED_SHORT",
    "MPI_INT",
    "MPI_UNSIGNED",
    "MPI_LONG",
    "MPI_UNSIGNED_LONG",
    "MPI_LONG_LONG_INT",
    "MPI_UNSIGNED_LONG_LONG",
    "MPI_FLOAT",
    "MPI_DOUBLE",
    "MPI_LONG_DOUBLE",
    "MPI_INT8_T",
    "MPI_INT16_T",
    "MPI_INT32_T",
    "MPI_INT64_T",
    "MPI_UINT8_T",
    "MPI_UINT16_T",
    "MPI_UINT32_T",
    "MPI_UINT64_T",
    "MPI_C_BOOL",
    "MPI_C_COMPLEX",
    "MPI_C_DOUBLE_COMPLEX",
    "MPI_C_LONG_DOUBLE_COMPLEX",
    "MPI_AINT",
    "MPI_OFFSET",
    "MPI_COUNT",
    "MPI_PACKED",
    "MPI_CXX_BOOL",
    "MPI_CXX_FLOAT_COMPLEX",
    "MPI_CXX_DOUBLE_COMPLEX",
    "MPI_CXX_LONG_DOUBLE_COMPLEX",
    "MPI_CHARACTER",
    "MPI_LOGICAL",
    "MPI_INTEGER",
    "MPI_REAL",
    "MPI_DOUBLE_PRECISION",
    "MPI_COMPLEX",
    "MPI_DOUBLE_COMPLEX",
    "MPI_LOGICAL1",
    "MPI_LOGICAL2",
    "MPI_LOGICAL4",
    "MPI_LOGICAL8",
    "MPI_LOGICAL16",
    "MPI_INTEGER1",
    "MPI_INTEGER2",
    "MPI_INTEGER4",
    "MPI_INTEGER8",
    "MPI_INTEGER16",
    "MPI_REAL2",
    "MPI_REAL4",
    "MPI_REAL8",
    "MPI_REAL16",
    "MPI_COMPLEX4",
    "MPI_COMPLEX8",
    "MPI_COMPLEX16",
    "MPI_COMPLEX32",
    "MPI_FLOAT_INT",
    "MPI_DOUBLE_INT",
    "MPI_LONG_INT",
    "MPI_2INT",
    "MPI_SHORT_INT",
    "MPI_LONG_DOUBLE_INT",
    "MPI_2REAL",
    "MPI_2DOUBLE_PRECISION",
    "MPI_2INTEGER",
    "MPI_2COMPLEX",
    "MPI_2DOUBLE_COMPLEX",
];
const OPS: [&str; 12] = [
    "MPI_MAX",
    "MPI_MIN",
    "MPI_SUM",
    "MPI_PROD",
    "MPI_LAND",
    "MPI_BAND",
    "MPI_LOR",
    "MPI_BOR",
    "MPI_LXOR",
    "MPI_BXOR",
    "MPI_MINLOC",
    "MPI_MAXLOC",
];
const NUMBERS: [&str; 23] = [
    "MPI_IN_PLACE",
    "MPI_STATUS_IGNORE",
    "MPI_SUCCESS",
    "MPI_ANY_SOURCE",
    "MPI_ANY_TAG",
    "MPI_UNDEFINED",
    "MPI_KEYVAL_INVALID",
    "MPI_MAX_LIBRARY_VERSION_STRING",
    "MPI_MAX_PROCESSOR_NAME",
    "MPI_MAX_PORT_NAME",
    "MPI_STATUSES_IGNORE",
    "MPI_ERR_NO_MEM",
    "MPI_ERR_BUFFER",
    "MPI_ERR_COUNT",
    "MPI_ERR_TYPE",
    "MPI_ERR_COMM",
    "MPI_ERR_ROOT",
    "MPI_ERR_OP",
    "MPI_ERR_ARG",
    "MPI_ERR_OTHER",
    // In Open MPI the first two are the first of an enumeration, which no preprocessor sees: 0, as what is missing.
    "MPI_TAG_UB",
    "MPI_COMBINER_NAMED",
    "MPI_THREAD_MULTIPLE",
];

fn main() {
    println!("cargo:rerun-if-env-changed=MPICC");
    println!("cargo:rerun-if-env-changed=MPI_HEADER_SUM");
    let shim =
        PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    for input in stamp::inputs(&shim) {
        println!("cargo:rerun-if-changed={}", input.display());
    }
    println!("cargo:rustc-link-arg=-Wl,-soname,libcolltune.so");
    let mpicc = env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    let lists: [(&str, &[&str]); 4] = [
        ("HANDLES", &HANDLES),
        ("DATATYPES", &DATATYPES),
        ("OPS", &OPS),
        ("NUMBERS", &NUMBERS),
    ];
    let mut probe =
        "#include <mpi.h>\n#ifdef OPEN_MPI\ncolltune_abi openmpi\n#elif defined(MPICH_VERSION)\n\
                     colltune_abi mpich\n#elif defined(MPI_ABI_VERSION)\n\
                     colltune_abi standard\n#endif\n"
            .to_owned();
    for name in lists.iter().flat_map(|(_, names)| names.iter()) {
        probe += &format!("colltune_value_{name} {name}\n");
    }
    let text = preprocess(&mpicc, &probe);
    let abi = text
        .lines()
        .find_map(|line| line.strip_prefix("colltune_abi "))
        .unwrap_or_else(|| panic!("{mpicc} is neither Open MPI's nor MPICH's compiler, nor one for the standard binary interface"));
    let feature = match abi.trim() {
        "standard" => "MPI_ABI".to_owned(),
        name => name.to_uppercase(),
    };
    assert!(
        env::var_os(format!("CARGO_FEATURE_{feature}")).is_some(),
        "{mpicc} is a compiler for {abi}: build with the feature {}",
        feature.to_lowercase()
    );
    println!("cargo:rustc-cfg=mpi=\"{}\"", abi.trim());

    // Persistent collectives are of MPI 4; Open MPI 4 has them as an extension.
    let standard = text
        .lines()
        .any(|line| line.contains("MPI_Allreduce_init("));
    let persistent = if standard { "standard" } else { "extension" };
    println!("cargo:rustc-cfg=persistent=\"{persistent}\"");

    let mut code = String::new();
    for (list, names) in lists {
        if list == "DATATYPES" && abi.trim() == "openmpi" {
            continue;
        }
        let rows: Vec<_> = names
            .iter()
            .map(|name| format!("    {}", constant(&text, name)))
            .collect();
        code += &format!(
            "pub const {list}: [Constant; {}] = [\n{},\n];\n",
            rows.len(),
            rows.join(",\n")
        );
    }
    for (place, name) in NUMBERS.iter().enumerate() {
        code += &format!("pub const {name}: isize = number(&NUMBERS[{place}]);\n");
    }
    for (place, name) in HANDLES.iter().enumerate() {
        code += &format!("pub const {name}: &Constant = &HANDLES[{place}];\n");
    }
    let stamp = stamp::stamp(&shim).expect("the sources can be read");
    code += &note(&stamp);
    code += &format!("/// What this library is made of.\npub const STAMP: &str = {stamp:?};\n");
    let file = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("constants.rs");
    fs::write(&file, code)
        .unwrap_or_else(|error| panic!("failed to write {}: {error}", file.display()));
}

/// What the library is made of, as an ELF note: no linker leaves one out because nothing refers to it.
fn note(stamp: &str) -> String {
    let text = format!("{}{stamp}", stamp::MARK);
    let padded = format!("{text:\0<36}");
    format!(
        "#[repr(C)]\nstruct Note([u32; 3], [u8; 12], [u8; 36]);\n\
         #[used]\n#[unsafe(link_section = \".note.colltune\")]\n\
         static NOTE: Note = Note([9, {}, 1], *b\"colltune\\0\\0\\0\\0\", *b{padded:?});\n",
        text.len()
    )
}

fn preprocess(mpicc: &str, probe: &str) -> String {
    let mut child = Command::new(mpicc)
        .args(["-E", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("failed to start {mpicc} (set MPICC to your MPI compiler): {error}")
        });
    child
        .stdin
        .take()
        .expect("stdin is piped")
        .write_all(probe.as_bytes())
        .expect("the compiler reads its input");
    let output = child.wait_with_output().expect("the compiler ends");
    assert!(output.status.success(), "{mpicc} failed to read mpi.h");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The row for one constant: a number, the name of a variable, or nothing where the header lacks it.
fn constant(text: &str, name: &str) -> String {
    let mark = format!("colltune_value_{name} ");
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(&mark))
        .unwrap_or_else(|| panic!("{name} got lost"))
        .trim();
    let value = if value == name {
        enumerator(text, name).unwrap_or(value)
    } else {
        value
    };
    if let Some((_, symbol)) = value.rsplit_once('&') {
        let symbol: String = symbol
            .chars()
            .skip_while(|c| !c.is_alphabetic())
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        return format!("Constant::Symbol(c\"{symbol}\")");
    }
    let digits = value
        .rsplit(')')
        .find(|part| !part.trim().is_empty())
        .unwrap_or(value);
    let digits = if digits.contains(|c: char| c.is_ascii_digit()) {
        digits
    } else {
        value
    };
    let word = digits.trim().trim_matches(|c: char| "() ".contains(c));
    let number = match word.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    };
    number.map_or("Constant::Missing".to_owned(), |number| {
        format!("Constant::Number({number})")
    })
}

/// The number of a name that is no macro but stands in an enumeration: `NAME = -1`.
fn enumerator<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let ends_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).find_map(|(start, _)| {
        let whole = !text[..start].ends_with(ends_name);
        let rest = text[start + name.len()..].trim_start();
        let value = rest.strip_prefix('=').filter(|_| whole)?;
        let end = value.find([',', '}', '\n'])?;
        Some(value[..end].trim())
    })
}
