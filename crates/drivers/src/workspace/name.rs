//! Names of step files. Agents and trees have ids that contain no path; `files/path.rs` checks names that agents
//! give.

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
}
