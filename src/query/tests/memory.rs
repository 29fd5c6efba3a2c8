//! What a query may take of memory. It is one number for a process, so that this test has one of its own.

use colltune_query::answer::{CsvLines, ParquetOut};
use colltune_query::{Engine, QueryError, open};

#[test]
fn a_query_that_needs_too_much_memory_is_told_so_and_others_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let words = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
                 SELECT i, i || hex(zeroblob(250)) AS word FROM n";
    let file = folder.path().join("words.0000.parquet");
    let engine = open(None, &[]).unwrap();
    engine
        .ask(words, &mut ParquetOut::new(&file, u64::MAX))
        .unwrap();
    Engine::limit_memory(32 << 20).unwrap();
    let engine = open(None, &[folder.path().to_owned()]).unwrap();
    let ask = |sql: &str| {
        let mut out = Vec::new();
        engine.ask(sql, &mut CsvLines::new(&mut out))?;
        Ok::<_, QueryError>(String::from_utf8(out).unwrap())
    };
    let sorts = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
                 SELECT i FROM n ORDER BY hex(zeroblob(1000000)) || i";
    for too_much in ["SELECT max(word) FROM words", "SELECT * FROM words", sorts] {
        let error = ask(too_much).expect_err(too_much);
        assert!(matches!(error, QueryError::Memory), "{too_much}: {error:?}");
        assert!(error.to_string().contains("--memory"), "{error}");
        // Only the columns that are named are read.
        assert_eq!(
            ask("SELECT sum(i) FROM words").unwrap(),
            "sum(i)\n20000100000\n"
        );
    }
}
