//! Outputs: whole, and within limits.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use spinney_drivers::files::Files;
use spinney_drivers::workspace::{StepWriter, Workspaces};
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::primitives::TreeId;
use spinney_testkit::{TestHome, settled};

use crate::files::Author;
use crate::{files, names};

const TREE: TreeId = TreeId::new([7; 16]);

fn author(home: &Path) -> Author<'_> {
    Author { home, files: Files::default(), tree: TREE, agent: "a", limits: OutputLimits::default() }
}

fn outputs(home: &Path) -> std::path::PathBuf {
    home.join("workspace").join(TREE.to_string()).join("a/outputs")
}

/// An agent may remove the whole folder.
#[test]
fn an_output_is_written_where_its_folder_was_removed() {
    let home = tempfile::tempdir().unwrap();
    let author = author(home.path());
    author.write("outputs/a.txt", "x").unwrap();
    fs::remove_dir_all(outputs(home.path())).unwrap();
    author.write("outputs/b.txt", "x").unwrap();
    assert_eq!(names(&outputs(home.path())), ["b.txt"]);
    assert_eq!(names(&outputs(home.path()).with_file_name("history")), [""; 0]);
}

/// L12 (files): ten files and no more, including sub-folders; a million bytes and no more.
#[test]
fn l12_what_would_pass_a_limit_is_refused_before_it_is_written() {
    let home = tempfile::tempdir().unwrap();
    let author = author(home.path());
    let limits = author.limits;
    assert_eq!((limits.files_max, limits.bytes_max), (10, 1_000_000));
    let deep = outputs(home.path()).join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    for number in 0..4 {
        fs::write(deep.join(format!("{number}.txt")), [b'x'; 100_000]).unwrap();
    }
    let most = "y".repeat(100_000);
    for number in 0..5 {
        author.write(&format!("outputs/{number}.txt"), &most).unwrap();
    }
    // 900,000 bytes in nine files: one byte too many, and then exactly as many as there may be.
    let before = files(home.path());
    let refused = author.write("outputs/5.txt", &"z".repeat(100_001)).unwrap_err();
    assert_snapshot!(refused, @"max_output_size_bytes would be exceeded: limit 1000000, used 900000, asked 100001: write less, or overwrite what is no longer needed");
    assert_eq!(files(home.path()), before);
    author.write("outputs/5.txt", &most).unwrap();
    let before = files(home.path());
    let refused = author.write("outputs/6.txt", "").unwrap_err();
    assert_snapshot!(refused, @"max_output_files would be exceeded: limit 10, used 10, asked 1: write less, or overwrite what is no longer needed");
    assert_eq!(files(home.path()), before);
    // After writing past the limits by other means, nothing more can be written.
    fs::write(deep.join("more.txt"), [b'x'; 100_000]).unwrap();
    assert!(author.write("outputs/6.txt", "").unwrap_err().starts_with("max_output_files"));
    let wide = Author { limits: OutputLimits { files_max: 100, ..limits }, ..author };
    let refused = wide.write("outputs/6.txt", "").unwrap_err();
    assert_snapshot!(refused, @"max_output_size_bytes would be exceeded: limit 1000000, used 1100000, asked 0: write less, or overwrite what is no longer needed");
}

/// L12 (tokens of a step): 16,000 output tokens by default, or what the model can write, or a quarter of its context.
#[tokio::test(start_paused = true)]
async fn l12_the_default_output_cap_depends_on_the_model() {
    for (context, output_max, expected) in [
        (None, None, 16_000),
        (Some(200_000), None, 16_000),
        (Some(8_000), None, 2_000),
        (Some(8_000), Some(500), 500),
        (None, Some(500_000), 16_000),
    ] {
        let stage = TestHome::new("rules: [ { say: Done. } ]");
        let home = stage.home();
        let mut definition = spinney_testkit::definition("root turns=20");
        let turns = spinney_kernel::definition::Turns::default();
        assert_eq!(turns.turns_max, 100);
        definition.roles.values_mut().for_each(|role| role.turns = Some(turns.clone()));
        for model in definition.models.values_mut() {
            (model.context, model.output_max) = (context, output_max);
        }
        settled(&home.start(definition).await.unwrap()).await;
        let cap = stage.model().attempts().pop().unwrap().output_cap;
        assert_eq!(cap, expected, "{context:?} {output_max:?}");
    }
}

#[test]
fn folders_without_end_are_not_walked_without_end() {
    let home = tempfile::tempdir().unwrap();
    let author = author(home.path());
    fs::create_dir_all(outputs(home.path()).join("d/".repeat(40))).unwrap();
    let refused = author.write("outputs/a.txt", "x").unwrap_err();
    assert!(refused.starts_with("depth of folders would be exceeded"), "{refused}");
}

#[test]
fn parallel_outputs_of_one_agent_keep_to_the_limit_together() {
    let home = tempfile::tempdir().unwrap();
    let author = author(home.path());
    let written: usize = std::thread::scope(|scope| {
        let author = &author;
        let many = |thread: usize| {
            let path = move |number| format!("outputs/{thread}-{number}.txt");
            (0..8).filter(|number| author.write(&path(*number), "x").is_ok()).count()
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || many(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((written, names(&outputs(home.path())).len()), (10, 10));
}

/// A history that is swept at the same moment takes no output away that is on its way.
#[test]
fn outputs_arrive_while_the_history_is_mended() {
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let stage = TestHome::new("rules: [ { say: Done. } ]");
    let ran = runtime.block_on(crate::Ran::play(&stage, "root $9.00 turns=20"));
    let workspaces = Workspaces::open(home.path(), ran.tree).unwrap();
    let limits = OutputLimits { files_max: 300, ..OutputLimits::default() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..300 {
                let mut step_writer = StepWriter::new(workspaces.clone(), ran.last(), |_| Ok(None));
                ran.recorded.iter().for_each(|recorded| {
                    step_writer.take(recorded.seq, recorded.at, &recorded.event).unwrap();
                });
            }
        });
        let author =
            Author { home: home.path(), files: Files::default(), tree: ran.tree, agent: "root", limits };
        for number in 0..300 {
            author.write(&format!("outputs/{number}.txt"), "x").unwrap();
        }
    });
    assert_eq!(names(&ran.agent(home.path(), "root").join("history")), ["step_001.json"]);
    assert_eq!(names(&ran.agent(home.path(), "root").join("outputs")).len(), 300);
}

/// An agent that is done has nothing to lose by it.
#[test]
fn nothing_of_the_outputs_is_touched_when_a_history_is_mended() {
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let stage = TestHome::new("rules: [ { say: Done. } ]");
    let ran = runtime.block_on(crate::Ran::play(&stage, "root $9.00 turns=20"));
    ran.write(home.path());
    let outputs = ran.agent(home.path(), "root").join("outputs");
    fs::create_dir(outputs.join("sub")).unwrap();
    for file in ["step_001.json", ".unfinished-step_001.json", "sub/notes.txt", "page_001.html"] {
        fs::write(outputs.join(file), file).unwrap();
    }
    let before = files(&outputs);
    ran.mend(home.path()).unwrap();
    assert_eq!(files(&outputs), before);
}
