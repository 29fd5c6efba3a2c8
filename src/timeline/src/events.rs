//! The trace-event format: one JSON object with a list of events, written as they come.
//!
//! ```text
//! {"traceEvents":[
//! {"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"node3"}},
//! {"ph":"X","pid":1,"tid":2,"ts":12.345,"dur":3.000,"name":"allreduce:p2p:ring","cat":"blocking","args":{...}}
//! ],"otherData":{"job":"..."}}
//! ```
//! Times are microseconds, with the nanoseconds behind the point. There is no `displayTimeUnit`: versions of Perfetto
//! take it for the unit of the times. Of an event's arguments Perfetto shows all, the Firefox profiler `detail`.
//!
//! Source: "Trace Event Format", the Chromium project; complete events (`X`) and metadata (`M`) only.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

/// Who an event belongs to: a track of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Track {
    /// The number of a host.
    pub process: u32,
    /// The number of a rank, or of what else has a track.
    pub thread: u32,
}

/// Something that lasted.
#[derive(Clone, Debug)]
pub struct Slice<'a, A> {
    pub track: Track,
    pub name: &'a str,
    pub category: &'a str,
    pub begin_ns: u64,
    pub duration_ns: u64,
    pub arguments: A,
}

/// Writes events, one on each line.
pub struct Events<W: Write> {
    out: BufWriter<W>,
    /// Slices.
    written: u64,
    is_empty: bool,
}

#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct SortIndex {
    sort_index: u32,
}

impl<W: Write> Events<W> {
    pub fn new(out: W) -> io::Result<Events<W>> {
        let mut out = BufWriter::with_capacity(1 << 18, out);
        out.write_all(b"{\"traceEvents\":[")?;
        Ok(Events {
            out,
            written: 0,
            is_empty: true,
        })
    }

    /// Names a process, and says where it stands among the others.
    pub fn process(&mut self, process: u32, name: &str) -> io::Result<()> {
        let track = Track { process, thread: 0 };
        self.metadata(track, "process_name", Name { name })?;
        let sort_index = process;
        self.metadata(track, "process_sort_index", SortIndex { sort_index })
    }

    /// Names a thread; `sort_index` says where it stands in its process.
    pub fn thread(&mut self, track: Track, name: &str, sort_index: u32) -> io::Result<()> {
        self.metadata(track, "thread_name", Name { name })?;
        self.metadata(track, "thread_sort_index", SortIndex { sort_index })
    }

    fn metadata(&mut self, track: Track, name: &str, arguments: impl Serialize) -> io::Result<()> {
        let Track { process, thread } = track;
        self.next()?;
        write!(
            self.out,
            "{{\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\"name\":\"{name}\",\"args\":"
        )?;
        serde_json::to_writer(&mut self.out, &arguments)?;
        self.out.write_all(b"}")
    }

    /// Those of one track come in the order of their beginnings.
    pub fn slice<A: Serialize>(&mut self, slice: &Slice<'_, A>) -> io::Result<()> {
        let Track { process, thread } = slice.track;
        self.next()?;
        write!(
            self.out,
            "{{\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{},\"dur\":{},\"name\":",
            microseconds(slice.begin_ns),
            microseconds(slice.duration_ns)
        )?;
        serde_json::to_writer(&mut self.out, slice.name)?;
        self.out.write_all(b",\"cat\":")?;
        serde_json::to_writer(&mut self.out, slice.category)?;
        self.out.write_all(b",\"args\":")?;
        serde_json::to_writer(&mut self.out, &slice.arguments)?;
        self.out.write_all(b"}")?;
        self.written += 1;
        Ok(())
    }

    fn next(&mut self) -> io::Result<()> {
        let separator: &[u8] = if self.is_empty { b"\n" } else { b",\n" };
        self.is_empty = false;
        self.out.write_all(separator)
    }

    /// Ends the file with what is to be known of it; gives how many slices were written.
    pub fn finish(mut self, about: &[(&str, String)]) -> io::Result<u64> {
        let about: serde_json::Map<String, serde_json::Value> = about
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
            .collect();
        self.out.write_all(b"\n],\"otherData\":")?;
        serde_json::to_writer(&mut self.out, &about)?;
        self.out.write_all(b"}\n")?;
        self.out.flush()?;
        Ok(self.written)
    }
}

fn microseconds(ns: u64) -> impl Display {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(slices: u64) -> serde_json::Value {
        let mut out = Vec::new();
        let mut events = Events::new(&mut out).unwrap();
        let track = Track {
            process: 1,
            thread: 7,
        };
        if slices > 0 {
            events.process(1, "no\"de\n").unwrap();
            events.thread(track, "rank 7", 7).unwrap();
        }
        for number in 0..slices {
            let slice = Slice {
                track,
                name: "bcast:native:binary",
                category: "blocking",
                begin_ns: 1_000_000_007 * number,
                duration_ns: number,
                arguments: serde_json::json!({ "bytes": u64::MAX }),
            };
            events.slice(&slice).unwrap();
        }
        assert_eq!(events.finish(&[("job", "<x>".to_owned())]).unwrap(), slices);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn what_is_written_is_json_with_nanoseconds_behind_the_point() {
        assert_eq!(written(0)["traceEvents"], serde_json::json!([]));
        let file = written(3);
        let events = file["traceEvents"].as_array().unwrap();
        assert_eq!(
            (events.len(), &file["otherData"]["job"]),
            (7, &"<x>".into())
        );
        assert_eq!(events[0]["args"]["name"], "no\"de\n");
        assert_eq!(
            (&events[6]["ts"], &events[6]["dur"]),
            (&2_000_000.014.into(), &0.002.into())
        );
        assert_eq!(events[5]["args"]["bytes"], u64::MAX);
        for event in events {
            for name in ["ph", "pid", "tid", "name"] {
                assert!(!event[name].is_null(), "{event}");
            }
        }
    }
}
