//! Pictures say what they show to those who do not see them, and can be seen by day and by night.

use colltune_book::pictures;

/// Between two marks; the file has them.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, behind) = text.split_once(begin)?;
    Some(behind.split_once(end)?.0)
}

#[test]
fn every_picture_says_what_it_shows() {
    for path in pictures() {
        let text = std::fs::read_to_string(&path).expect("a picture of ours");
        let name = path.file_stem().expect("a name").to_string_lossy();
        let file = path.display();
        let labels = format!("role=\"img\" aria-labelledby=\"{name}-title {name}-desc\"");
        assert!(text.contains(&labels), "{file}: {labels}");
        for (kind, least) in [("title", 10), ("desc", 80)] {
            let begin = format!("<{kind} id=\"{name}-{kind}\">");
            let said = between(&text, &begin, &format!("</{kind}>"));
            assert!(
                said.is_some_and(|said| said.len() > least),
                "{file}: {begin}"
            );
        }
    }
}

/// Words and lines are dark by day and light by night, and fills let the page's colour through.
#[test]
fn every_picture_can_be_seen_by_day_and_by_night() {
    for path in pictures() {
        let text = std::fs::read_to_string(&path).expect("a picture of ours");
        let file = path.display();
        let style = between(&text, "<style>", "</style>").unwrap_or_default();
        assert!(style.starts_with("svg{color:"), "{file}: {style}");
        assert!(style.contains("prefers-color-scheme:dark"), "{file}");
        for stroke in text.split("stroke=\"").skip(1) {
            assert!(stroke.starts_with("currentColor"), "{file}: {stroke:.30}");
        }
        for fill in text.split(" fill=\"").skip(1) {
            let of_page = fill.starts_with("currentColor") || fill.starts_with("none");
            let is_clear = fill
                .split('>')
                .next()
                .is_some_and(|rest| rest.contains("fill-opacity"));
            assert!(of_page || is_clear, "{file}: {fill:.30}");
        }
    }
}
