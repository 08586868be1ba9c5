//! Names of files in a workspace. Agents and trees are named by ids that hold no path; everything else that becomes a
//! file name is checked or made here.

/// The file of an agent's n-th step.
pub(super) fn step_file(number: u32) -> String {
    format!("{}.json", step_id(number))
}

/// The id of an agent's n-th step. The first is 1; after 999 there are more digits.
pub(super) fn step_id(number: u32) -> String {
    format!("step_{number:03}")
}

/// Which step a file belongs to, if it is named as one.
pub(super) fn step_number(file: &str) -> Option<u32> {
    let number = file.strip_prefix("step_")?.strip_suffix(".json")?.parse().ok()?;
    // Only as we write it: no sign, no other count of zeros.
    (step_file(number) == file).then_some(number)
}

/// What an output is called: its kind, and the ending that says how to open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputName {
    kind: String,
    ext: String,
}

/// Why a text names no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {what} of an output: {rule}")]
pub struct BadName {
    pub what: &'static str,
    /// What was given, cut to a readable length.
    pub text: String,
    pub rule: &'static str,
}

impl OutputName {
    /// Checks both parts.
    ///
    /// # Errors
    /// Names the part and what is allowed.
    pub fn new(kind: &str, ext: &str) -> Result<Self, BadName> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bad = |what, text: &str, rule| BadName { what, text: text.chars().take(80).collect(), rule };
        let is_kind = (1..=48).contains(&kind.len())
            && kind.bytes().all(|b| plain(b) || matches!(b, b'_' | b'-'))
            && kind.bytes().next().is_some_and(plain);
        if !is_kind {
            let rule = "1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit";
            return Err(bad("kind", kind, rule));
        }
        if !(1..=16).contains(&ext.len()) || !ext.bytes().all(plain) {
            return Err(bad("ending", ext, "1 to 16 characters of a-z and 0-9, without a dot"));
        }
        Ok(Self { kind: kind.to_owned(), ext: ext.to_owned() })
    }

    /// The n-th file of this kind.
    pub(super) fn file(&self, number: u32) -> String {
        format!("{}_{number:03}.{}", self.kind, self.ext)
    }

    /// Which one of this kind a file is, whatever its ending. What nobody of ours numbered is none.
    pub(super) fn number(&self, file: &str) -> Option<u32> {
        let digits = file.strip_prefix(self.kind.as_str())?.strip_prefix('_')?.split('.').next()?;
        let is_ours = (3..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        is_ours.then(|| digits.parse().ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_with_three_digits_and_more_after_999() {
        let files: Vec<String> = [1, 42, 999, 1_000, 12_345].into_iter().map(step_file).collect();
        assert_eq!(
            files,
            ["step_001.json", "step_042.json", "step_999.json", "step_1000.json", "step_12345.json"]
        );
        assert_eq!(
            files.iter().filter_map(|file| step_number(file)).collect::<Vec<_>>(),
            [1, 42, 999, 1_000, 12_345]
        );
    }

    #[test]
    fn what_is_not_named_as_we_name_it_is_no_step() {
        for file in [
            "step_1.json",
            "step_+01.json",
            "step_0001.json",
            "step_001.JSON",
            "step_001.json.bak",
            "step_.json",
            "step_99999999999.json",
            "notes.txt",
            ".unfinished-step",
            "",
        ] {
            assert_eq!(step_number(file), None, "{file}");
        }
    }

    #[test]
    fn an_output_is_named_by_plain_words_only() {
        for (kind, ext) in [
            ("", "json"),
            ("../x", "json"),
            ("a/b", "json"),
            (".hidden", "txt"),
            ("A", "txt"),
            ("a b", "txt"),
            ("a\0", "txt"),
            ("_a", "txt"),
            ("a.b", "txt"),
            (&"k".repeat(49), "txt"),
            ("page", ""),
            ("page", "../sh"),
            ("page", "tar.gz"),
            ("page", "a/b"),
            ("page", "HTML"),
            ("page", &"e".repeat(17)),
            ("page", "j\n"),
            ("é", "txt"),
        ] {
            assert!(OutputName::new(kind, ext).is_err(), "{kind:?} {ext:?}");
        }
        assert_eq!(OutputName::new("search-2_b", "json").unwrap().file(7), "search-2_b_007.json");
    }

    #[test]
    fn the_next_number_of_a_kind_follows_what_we_numbered_and_nothing_else() {
        let page = OutputName::new("page", "html").unwrap();
        let number = |file| page.number(file);
        assert_eq!(
            [number("page_001.html"), number("page_012.json"), number("page_1234.html")],
            [Some(1), Some(12), Some(1234)]
        );
        for other in
            ["page_1.html", "pages_001.html", "page_4294967295.html", "page_-01.html", "page", "page_"]
        {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
