//! Outputs: numbered, whole, and within limits.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use spinney_drivers::workspace::{OutputName, Over, PutError, StepWriter, Workspace, Workspaces};
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::words::{AgentId, TreeId};
use spinney_testkit::{Stage, settled};

use crate::{files, names};

const TREE: TreeId = TreeId::new([7; 16]);

fn agent() -> AgentId {
    "a".parse().unwrap_or_else(|error| panic!("{error}"))
}

fn workspace(home: &Path) -> Workspace {
    let opened = Workspaces::open(home, TREE).and_then(|workspaces| workspaces.agent(&agent()));
    opened.unwrap_or_else(|fault| panic!("{fault}"))
}

fn outputs(home: &Path) -> std::path::PathBuf {
    home.join("workspace").join(TREE.to_string()).join("a/outputs")
}

fn name(kind: &str, ext: &str) -> OutputName {
    OutputName::new(kind, ext).unwrap_or_else(|bad| panic!("{bad}"))
}

fn over(put: Result<String, PutError>) -> (Over, u64, u64, u64) {
    match put {
        Err(PutError::Limit { over, limit, used, asked, .. }) => (over, limit, used, asked),
        other => panic!("{other:?}"),
    }
}

#[test]
fn outputs_are_numbered_by_their_kind() {
    let home = tempfile::tempdir().unwrap();
    let workspace = workspace(home.path());
    let put = |kind: &str, ext: &str| workspace.put(&name(kind, ext), b"x", OutputLimits::default()).unwrap();
    assert_eq!(
        [put("page", "html"), put("page", "html"), put("search", "json"), put("page", "json")],
        [
            "outputs/page_001.html",
            "outputs/page_002.html",
            "outputs/search_001.json",
            "outputs/page_003.json"
        ]
    );
    // What was made with numbers that are used is not written over, and nothing is left where it was made.
    fs::remove_file(outputs(home.path()).join("page_001.html")).unwrap();
    assert_eq!(put("page", "html"), "outputs/page_004.html");
    assert_eq!(names(&outputs(home.path()).with_file_name("history")), [""; 0]);
    // An agent may remove the whole folder.
    fs::remove_dir_all(outputs(home.path())).unwrap();
    assert_eq!(put("page", "html"), "outputs/page_001.html");
}

/// L12: ten files and no more, in sub-folders too; a million bytes and no more; two thousand tokens of a step.
#[tokio::test(start_paused = true)]
async fn l12_what_would_pass_a_limit_is_refused_before_it_is_written() {
    let home = tempfile::tempdir().unwrap();
    let workspace = workspace(home.path());
    let limits = OutputLimits::default();
    assert_eq!((limits.files_max, limits.bytes_max), (10, 1_000_000));
    let deep = outputs(home.path()).join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    for number in 0..4 {
        fs::write(deep.join(format!("{number}.txt")), [b'x'; 100_000]).unwrap();
    }
    let page = name("page", "html");
    for _ in 0..5 {
        workspace.put(&page, &[b'y'; 100_000], limits).unwrap();
    }
    // 900,000 bytes in nine files: one byte too many, and then exactly as many as there may be.
    let before = files(home.path());
    assert_eq!(
        over(workspace.put(&page, &[b'z'; 100_001], limits)),
        (Over::Bytes, 1_000_000, 900_000, 100_001)
    );
    assert_eq!(files(home.path()), before);
    workspace.put(&page, &[b'z'; 100_000], limits).unwrap();
    let before = files(home.path());
    let refused = workspace.put(&page, b"", limits);
    assert_snapshot!(refused.as_ref().unwrap_err(), @"max_output_files of `07070707070707070707070707070707/a`: limit 10, there 10, asked 1: write less, or remove what is not needed");
    assert_eq!(over(refused), (Over::Files, 10, 10, 1));
    assert_eq!(files(home.path()), before);
    // Whoever wrote past the limits by other means finds them shut.
    fs::write(deep.join("more.txt"), [b'x'; 100_000]).unwrap();
    assert_eq!(over(workspace.put(&page, b"", limits)).0, Over::Files);
    let wide = OutputLimits { files_max: 100, ..limits };
    assert_eq!(over(workspace.put(&page, b"", wide)), (Over::Bytes, 1_000_000, 1_100_000, 0));

    let stage = Stage::new("rules: [ { say: Done. } ]");
    let home = stage.home();
    let fixture = "root $9.00 turns=20";
    let mut definition = spinney_testkit::definition(fixture);
    for role in definition.roles.values_mut() {
        role.turns = Some(spinney_kernel::definition::Turns::default());
    }
    settled(&home.start(definition).await.unwrap()).await;
    assert_eq!(stage.model().attempts().pop().unwrap().output_cap, 2_000);
}

#[test]
fn folders_without_end_are_not_walked_without_end() {
    let home = tempfile::tempdir().unwrap();
    let workspace = workspace(home.path());
    fs::create_dir_all(outputs(home.path()).join("d/".repeat(40))).unwrap();
    let put = workspace.put(&name("page", "html"), b"x", OutputLimits::default());
    assert_eq!(over(put).0, Over::Depth);
}

#[test]
fn parallel_outputs_of_one_agent_keep_to_the_limit_together() {
    let home = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::open(home.path(), TREE).unwrap();
    let written: usize = std::thread::scope(|scope| {
        let one = || {
            let workspace = workspaces.agent(&agent()).unwrap();
            (0..8)
                .filter(|_| workspace.put(&name("page", "html"), b"x", OutputLimits::default()).is_ok())
                .count()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((written, names(&outputs(home.path())).len()), (10, 10));
}

/// A history that is swept at the same moment takes no output away that is on its way.
#[test]
fn outputs_arrive_while_the_history_is_mended() {
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let stage = Stage::new("rules: [ { say: Done. } ]");
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
        let workspace = workspaces.agent(&"root".parse().unwrap()).unwrap();
        (0..300).for_each(|_| drop(workspace.put(&name("page", "html"), b"x", limits).unwrap()));
    });
    assert_eq!(names(&ran.agent(home.path(), "root").join("history")), ["step_001.json"]);
    assert_eq!(names(&ran.agent(home.path(), "root").join("outputs")).len(), 300);
}

/// An agent that is done has nothing to lose by it.
#[test]
fn nothing_of_the_outputs_is_touched_when_a_history_is_mended() {
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let stage = Stage::new("rules: [ { say: Done. } ]");
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
