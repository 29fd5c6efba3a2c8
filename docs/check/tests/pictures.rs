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

/// They stand in the page itself: their words and lines have the page's colour, and their fills let it through.
#[test]
fn every_picture_takes_its_colours_from_the_page() {
    for path in pictures() {
        let text = std::fs::read_to_string(&path).expect("a picture of ours");
        let file = path.display();
        let begins = text.starts_with("<svg ") && !text.contains("\n\n");
        assert!(begins, "{file}: Markdown ends a picture at an empty line");
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
