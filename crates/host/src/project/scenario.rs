//! The scenarios of `examples/scenarios` as templates: one pattern each, found by its number or its name. What they are for
//! is the first line of each file.

use super::template::{BuiltinTemplate, TemplateContent};

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        /// In the order of their numbers.
        pub static SCENARIOS: &[BuiltinTemplate] = &[$(BuiltinTemplate {
            name: $name,
            about: purpose(include_str!(concat!("../../../../examples/scenarios/", $name, ".yaml"))),
            content: TemplateContent::Tree {
                stem: $name,
                tree: include_str!(concat!("../../../../examples/scenarios/", $name, ".yaml")),
                script: include_str!(concat!("../../../../examples/scenarios/", $name, ".script.yaml")),
                setting: None,
            },
        }),*];
    };
}

scenarios! {
    "s01-sequence",
    "s02-fan-out",
    "s03-fan-in",
    "s04-nesting",
    "s05-peers",
    "s06-choose",
    "s07-leave-and-return",
    "s08-shared-memory",
    "s09-resume",
    "s10-partial",
    "s11-ask-from-below",
    "s12-several-questions",
    "s13-redirect",
    "s14-answer-timeout",
    "s15-critic-loop",
    "s16-vote",
    "s17-race",
    "s18-map-reduce",
    "s19-timeout",
    "s20-cycle",
    "s21-undo",
    "s22-wrong-type",
    "s23-seven-of-ten",
    "s24-one-trace",
    "s25-rate-limits",
    "s26-streaming",
    "s27-audit",
    "structured-answer",
}

/// The number of a scenario, as in `s18` for `s18-map-reduce`.
pub fn number(name: &str) -> Option<&str> {
    let number = name.split_once('-').map_or(name, |(number, _)| number);
    let is_number =
        matches!(number.as_bytes(), [b's', tens, ones] if tens.is_ascii_digit() && ones.is_ascii_digit());
    is_number.then_some(number)
}

/// When a scenario is used, from its first line: `# S18, map-reduce. Use it when …`.
const fn purpose(tree: &'static str) -> &'static str {
    const MARK: &str = ". Use it ";
    let (_, purpose) = tree.split_at(position(tree.as_bytes(), MARK.as_bytes()) + MARK.len());
    purpose.split_at(position(purpose.as_bytes(), b".\n")).0
}

/// Where a part begins. A text without it does not compile.
const fn position(text: &[u8], part: &[u8]) -> usize {
    let mut start = 0;
    loop {
        let mut same = 0;
        while same < part.len() && text[start + same] == part[same] {
            same += 1;
        }
        if same == part.len() {
            return start;
        }
        start += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A scenario that is added to the folder is offered.
    #[test]
    fn every_file_of_the_folder_is_a_template() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = files
            .filter_map(|file| file.to_str()?.strip_suffix(".yaml").map(str::to_owned))
            .filter(|name| !name.ends_with(".script"))
            .collect();
        names.sort();
        assert_eq!(SCENARIOS.iter().map(|scenario| scenario.name).collect::<Vec<_>>(), names);
    }

    /// People read what it is for in the first line, and copy all of it.
    #[test]
    fn every_scenario_is_short_and_says_in_its_first_line_when_to_use_it() {
        for scenario in SCENARIOS {
            let TemplateContent::Tree { tree, .. } = scenario.content else { panic!("{}", scenario.name) };
            let first = tree.lines().next().unwrap();
            let number = number(scenario.name).map(|number| number.trim_start_matches(['s', '0']));
            let begins = number.map_or("# ".to_owned(), |number| format!("# S{number}, "));
            assert!(first.starts_with(&begins) && first.contains(scenario.about), "{first}");
            assert!(first.ends_with(&format!("{}.", scenario.about)), "{first}");
            assert!(tree.lines().count() <= 60, "{}", scenario.name);
        }
    }

    #[test]
    fn a_scenario_has_its_number() {
        assert_eq!(number("s18-map-reduce"), Some("s18"));
        assert_eq!(number("s18"), Some("s18"));
        for name in ["structured-answer", "s1", "s180", "x18", "", "s3-bucket"] {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
