//! The programs of a tree file: files beside it that their commands name.

use std::path::Path;

use spinney::tree_file::{FileProblem, TreeFile};
use spinney_kernel::definition::ProgramCommand;

use super::command_tools::is_beside;

/// Where the task would begin.
const PLACE: &str = "{{";

/// Completes the paths of files in the folder of the tree file. What is wrong is at its place.
pub(super) fn complete(file: &mut TreeFile, folder: &Path) -> Vec<FileProblem> {
    let found = |word: &str| {
        let path = is_beside(word).then(|| folder.join(word).canonicalize())?.ok()?;
        path.to_str().filter(|path| !path.contains(PLACE)).map(str::to_owned)
    };
    file.complete_programs(&found);
    let mut problems = Vec::new();
    for (role, _, program) in file.definition.programs() {
        let ProgramCommand::Words(words) = &program.command else { continue };
        if let Some(word) = words.fixed_words().find(|word| is_beside(word)) {
            let reason = format!("cannot find {}", folder.join(word).display());
            problems.push(FileProblem::error(file.bad_program(role, reason)));
        }
    }
    problems
}
