//! The call log (`COLLTUNE_LOG=calls:DIR`): one line of JSON for each tuned call and rank.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::quiet::quietly;

/// One line of the log; `comm` is `null` before the communicator has an agreed number.
pub struct Line<'a> {
    pub comm: Option<u64>,
    pub index: u64,
    pub collective: &'a str,
    pub bytes: u64,
    pub nodes: u32,
    pub ppn: u32,
    pub cell: Option<u32>,
    pub variant: &'a str,
    pub sampled: bool,
}

pub struct CallLog {
    file: File,
    /// Device and inode: the program may close descriptors that are not its own and use their numbers again.
    identity: (u64, u64),
    text: String,
}

impl CallLog {
    /// Opens `DIR/rank-N.jsonl`; the folder is made where it is missing.
    pub fn open(folder: &str, rank: u32) -> std::io::Result<CallLog> {
        std::fs::create_dir_all(folder)?;
        let file = File::create(Path::new(folder).join(format!("rank-{rank}.jsonl")))?;
        Ok(CallLog {
            identity: identity(&file)?,
            file,
            text: String::with_capacity(256),
        })
    }

    /// Writes one line at once, so that a job which is killed leaves every call before that.
    pub fn write(&mut self, line: &Line) {
        use std::fmt::Write as _;
        let number =
            |value: Option<u64>| value.map_or("null".to_owned(), |value| value.to_string());
        self.text.clear();
        let _ = writeln!(
            self.text,
            "{{\"comm\":{},\"index\":{},\"collective\":\"{}\",\"bytes\":{},\"nodes\":{},\"ppn\":{},\"cell\":{},\
             \"variant\":\"{}\",\"sampled\":{}}}",
            number(line.comm),
            line.index,
            line.collective,
            line.bytes,
            line.nodes,
            line.ppn,
            number(line.cell.map(u64::from)),
            line.variant,
            line.sampled,
        );
        // A log that cannot be written must not disturb the program, nor may its lines go elsewhere.
        if identity(&self.file).is_ok_and(|found| found == self.identity) {
            let _ = quietly(|| self.file.write_all(self.text.as_bytes()));
        }
    }
}

fn identity(file: &File) -> std::io::Result<(u64, u64)> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
}
