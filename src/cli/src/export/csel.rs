//! MPICH's selection trees: keys tried in order, the first that holds leads on.

use std::fmt::Write;

/// A node of a selection tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// `algorithm=...` or `composition=...`; behind it, each after a space, its settings such as `k=2`.
    Leaf(String),
    /// Conditions in the order in which they are tried.
    Keys(Vec<(String, Tree)>),
}

/// One row of a flat table: conditions that must all hold, and the leaf.
pub struct Row<'a> {
    pub conditions: Vec<&'a str>,
    pub leaf: String,
}

impl Tree {
    /// Folds rows into a tree. Rows that share their first conditions stand together.
    pub fn from_rows(rows: &[Row]) -> Tree {
        if let [row] = rows
            && row.conditions.is_empty()
        {
            return Tree::Leaf(row.leaf.clone());
        }
        let mut keys: Vec<(String, Vec<Row>)> = Vec::new();
        for row in rows {
            let (first, rest) = row
                .conditions
                .split_first()
                .expect("rows beside others have a condition");
            let row = Row {
                conditions: rest.to_vec(),
                leaf: row.leaf.clone(),
            };
            match keys.last_mut() {
                Some((key, group)) if key == first => group.push(row),
                _ => keys.push(((*first).to_owned(), vec![row])),
            }
        }
        Tree::Keys(
            keys.into_iter()
                .map(|(key, group)| (key, Tree::from_rows(&group)))
                .collect(),
        )
    }

    /// `bounds` in ascending order, each with what holds up to it; `rest` holds above.
    ///
    /// `key` spells the bound; `any` is the condition that always holds. Equal neighbours merge.
    pub fn chain(
        bounds: Vec<(u64, Tree)>,
        key: impl Fn(u64) -> String,
        any: &str,
        rest: Tree,
    ) -> Tree {
        let mut keys: Vec<(String, Tree)> = Vec::new();
        for (bound, tree) in bounds {
            match keys.last_mut() {
                Some((last, same)) if *same == tree => *last = key(bound),
                _ => keys.push((key(bound), tree)),
            }
        }
        while keys.last().is_some_and(|(_, tree)| *tree == rest) {
            keys.pop();
        }
        if keys.is_empty() {
            return rest;
        }
        keys.push((any.to_owned(), rest));
        Tree::Keys(keys)
    }

    /// A question with two answers; no question where both lead to the same.
    pub fn either(key: &str, then: Tree, otherwise: &str, other: Tree) -> Tree {
        if then == other {
            return then;
        }
        Tree::Keys(vec![(key.to_owned(), then), (otherwise.to_owned(), other)])
    }

    /// The text of the file.
    ///
    /// MPICH maps the file and reads up to a zero byte, which only the rest of the last page
    /// gives: a length that fills its pages would read past the mapping, so it is avoided.
    pub fn to_file(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text.push('\n');
        if text.len().is_multiple_of(4096) {
            text.push('\n');
        }
        text
    }

    fn write(&self, text: &mut String, depth: usize) {
        let indent = " ".repeat(depth + 1);
        match self {
            Tree::Leaf(leaf) => {
                let mut words = leaf.split(' ');
                let name = words.next().unwrap_or_default();
                let settings: Vec<String> = words.map(|word| format!("\"{word}\": {{}}")).collect();
                let _ = write!(text, "{{\"{name}\": {{{}}}}}", settings.join(", "));
            }
            Tree::Keys(keys) => {
                text.push_str("{\n");
                for (place, (key, tree)) in keys.iter().enumerate() {
                    let _ = write!(text, "{indent}\"{key}\": ");
                    tree.write(text, depth + 1);
                    text.push_str(if place + 1 < keys.len() { ",\n" } else { "\n" });
                }
                let _ = write!(text, "{}}}", " ".repeat(depth));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_merge_equal_neighbours_and_rows_fold() {
        let leaf = |name: &str| Tree::Leaf(name.to_owned());
        let chain = Tree::chain(
            vec![
                (1, leaf("a")),
                (2, leaf("a")),
                (3, leaf("b")),
                (4, leaf("c")),
            ],
            |bound| format!("<={bound}"),
            "any",
            leaf("c"),
        );
        let keys = |list: &[(&str, &str)]| {
            Tree::Keys(
                list.iter()
                    .map(|(k, v)| ((*k).to_owned(), leaf(v)))
                    .collect(),
            )
        };
        assert_eq!(chain, keys(&[("<=2", "a"), ("<=3", "b"), ("any", "c")]));
        let rows =
            [("x=1 y=1", "a"), ("x=1 y=any", "b"), ("x=any", "c")].map(|(conditions, leaf)| Row {
                conditions: conditions.split(' ').collect(),
                leaf: leaf.to_owned(),
            });
        let Tree::Keys(top) = Tree::from_rows(&rows) else {
            panic!()
        };
        assert_eq!(
            top[0],
            ("x=1".to_owned(), keys(&[("y=1", "a"), ("y=any", "b")]))
        );
        assert_eq!(top[1], ("x=any".to_owned(), leaf("c")));
    }

    #[test]
    fn no_file_fills_its_last_page() {
        for length in 4000..4200 {
            let text = Tree::Leaf("x".repeat(length)).to_file();
            assert_ne!(text.len() % 4096, 0);
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
        }
    }
}
