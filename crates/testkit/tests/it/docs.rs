//! The documentation matches the code: `docs/journal.md` lists every event and field.

const EVENTS: &str = include_str!("../../../kernel/src/record/event.rs");
const SPAWNED: &str = include_str!("../../../kernel/src/record/spawned.rs");
const JOURNAL: &str = include_str!("../../../../docs/journal.md");

#[test]
fn every_event_and_every_field_is_described() {
    let events = body_of(EVENTS, "pub enum Event {");
    let names = words_at(events, 4).filter(|word| word.starts_with(char::is_uppercase)).map(snake);
    let fields = words_at(events, 8).chain(words_at(body_of(SPAWNED, "pub struct Spawned {"), 4));
    // The fields of `due` are flattened in a journal.
    let fields =
        fields.filter(|word| *word != "due").chain(words_at(body_of(SPAWNED, "pub struct Due {"), 4));
    let fields = fields.filter(|word| word.starts_with(char::is_lowercase)).map(str::to_owned);
    let all: Vec<String> = names.chain(fields).collect();
    let missing: Vec<&String> = all.iter().filter(|word| !JOURNAL.contains(&format!("`{word}`"))).collect();
    assert!(all.len() > 60, "the source was not read: {all:?}");
    assert_eq!(missing, Vec::<&String>::new(), "docs/journal.md does not describe these");
}

fn body_of<'a>(source: &'a str, opening: &str) -> &'a str {
    let body = source.split_once(opening).and_then(|(_, body)| body.split_once("\n}\n"));
    body.map_or_else(|| panic!("`{opening}` is not in the source"), |(body, _)| body)
}

/// The first word of each line with exactly this indentation that is neither a comment nor an attribute.
fn words_at(body: &str, indent: usize) -> impl Iterator<Item = &str> {
    body.lines().filter_map(move |line| {
        let word = line.strip_prefix(&" ".repeat(indent))?;
        let word = word.strip_prefix("pub ").unwrap_or(word);
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        (end > 0).then(|| &word[..end])
    })
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
