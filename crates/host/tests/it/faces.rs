//! What faces other than the command line show: a checked file, tried models, explained options, templates and prices, all
//! without an option or a command in them.

use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use spinney_drivers::prices::PriceTable;
use spinney_host::OwnDrivers;
use spinney_host::check::{CheckWords, CheckedFile};
use spinney_host::defaults::{OptionSource, Sourced};
use spinney_host::doctor::{BoxFinding, DoctorReport, DoctorWords, HomeFinding, ModelTrials, TrialKind};
use spinney_host::explain::Explanation;
use spinney_host::prepared::StartRequest;
use spinney_host::price_list;
use spinney_host::project::new_files::{NewFiles, NewFilesError, SchemaCopy, TreeTexts};
use spinney_host::project::template::{self, FoundTemplate, TemplateContent, TemplateError};
use spinney_host::tree_file::source::Scripts;
use spinney_host::user::configuration::Configuration;
use spinney_host::user::variables::Variables;
use spinney_kernel::primitives::Time;
use tempfile::TempDir;

const NOW: Time = Time(1_780_000_000_000);

const CHECK_WORDS: CheckWords = CheckWords {
    no_goal: "a request needs a goal",
    allow_host: |host| format!("add {host} to `hosts`"),
    input: ToString::to_string,
    allow_box: |what| format!("allow {what}"),
    install: |file| format!("install the servers of {}", file.display()),
};

const DOCTOR_WORDS: DoctorWords = DoctorWords {
    other_home: "name another one",
    accept_loss: |_, _| None,
    allow_host: |host| format!("add {host} to `hosts`"),
    more_time: "try again with more time",
};

/// The default template, written into a folder.
fn hello(folder: &TempDir, schema: SchemaCopy) -> (PathBuf, Result<(), NewFilesError>) {
    let Ok(FoundTemplate::Builtin(TemplateContent::Tree { stem, tree, script, .. })) =
        template::find(None, None)
    else {
        unreachable!("the first template is a tree")
    };
    let file = folder.path().join("tree.yaml");
    let written = NewFiles::of_tree(&file, &TreeTexts { stem, tree, script }, None, schema)
        .and_then(|files| files.write());
    (file, written)
}

fn checked(file: &Path) -> CheckedFile {
    let request = StartRequest::new(file);
    CheckedFile::read(Path::new("none"), &request, CHECK_WORDS, &OwnDrivers::default(), NOW).unwrap()
}

#[test]
fn a_checked_file_is_data_with_lines_for_people() {
    let folder = tempfile::tempdir().unwrap();
    let (file, written) = hello(&folder, SchemaCopy::Without);
    written.unwrap();
    let checked = checked(&file);
    assert!(checked.ok, "{:?}", checked.problems);
    let outline = checked.outline.as_ref().unwrap();
    let json = serde_json::to_value(&checked).unwrap();
    assert_eq!((&json["type"], &json["name"]), (&"check".into(), &outline.name.as_str().into()));
    assert_eq!(json["agents"].as_array().map(Vec::len), Some(outline.agents.len()));
    assert_eq!(json["worst_case"]["cost_nanos"].as_u64(), outline.worst_case.cost_nanos);
    assert!(outline.text().starts_with("  tree    first\n  goal    "), "{}", outline.text());
}

#[test]
fn a_problem_has_its_line_and_the_words_of_its_face() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.yaml");
    let model = "{ provider: openai_compatible, model: any, base_url: 'https://models.invalid/v1', key_env: SOME_KEY }";
    fs::write(&file, format!("name: t\nmodels:\n  m: {model}\nagents: {{ lead: {{ model: m }} }}\n"))
        .unwrap();
    let checked = checked(&file);
    let shown: Vec<String> = checked.problems.iter().map(ToString::to_string).collect();
    let shown = shown.join("\n").replace(&folder.path().display().to_string(), "");
    assert_snapshot!(shown, @r"
    /tree.yaml:3:59: warning: sends SOME_KEY (key) to models.invalid for model `m`, and you have not allowed that
      3 |   m: { provider: openai_compatible, model: any, base_url: 'https://models.invalid/v1', key_env: SOME…
        |                                                           ^ if you trust this file and that host, add models.invalid to `hosts`
    /tree.yaml:1:1: note: a request needs a goal
      1 | name: t
        | ^
    /tree.yaml:3:97: note: model `m` needs a key, but SOME_KEY is not set
      3 | …valid/v1', key_env: SOME_KEY }
        |                      ^ type `export SOME_KEY=…` with your key, or give the model a `script` that answers without one
    ");
    assert_eq!(checked.counts(), "1 warning, 2 notes");
}

#[tokio::test]
async fn the_models_of_a_file_are_tried() {
    let folder = tempfile::tempdir().unwrap();
    let (file, written) = hello(&folder, SchemaCopy::Without);
    written.unwrap();
    let home = folder.path().join("home");
    let user = Variables::read(&Configuration::default()).unwrap();
    let scripts = Scripts::Below { allow: "allow others" };
    let trials = ModelTrials::read(&file, &home, scripts, user, DOCTOR_WORDS).unwrap();
    assert!(trials.egress().is_empty(), "a script sends nothing");
    let models = trials.run(&[], TrialKind::Call, 1_000).await.unwrap();
    let report = DoctorReport::new(
        HomeFinding::look(&home, DOCTOR_WORDS).await,
        BoxFinding::look().await,
        Vec::new(),
        Vec::new(),
        Some(models),
    );
    assert!(report.ok);
    let shown = report.to_string().replace(&folder.path().display().to_string(), "");
    assert_snapshot!(shown, @r"
    ok       home  /home: does not exist yet, the first run creates it
    REFUSED  box   commands are refused: Landlock 0, filters do not work, namespaces do not work
                   refused commands: the `main` of this program does not call `guard_a_box`
    SCRIPTED fast  scripted
                   script  tree.script.yaml answers

    1 of 1 model ready, 1 from a script
    ");
}

#[test]
fn options_have_their_sources() {
    let folder = tempfile::tempdir().unwrap();
    let (file, written) = hello(&folder, SchemaCopy::Without);
    written.unwrap();
    let home = Sourced::new(folder.path(), OptionSource::Default);
    let explained = Explanation::of_tree(&home, &StartRequest::new(&file), &OwnDrivers::default()).unwrap();
    let goal = explained.options.iter().find(|option| option.name == "goal").unwrap();
    assert_eq!(goal.source, OptionSource::File(file.display().to_string()));
    let json = serde_json::to_value(&explained).unwrap();
    assert_eq!((&json["type"], &json["options"][0]["from"]), (&"explain".into(), &"default".into()));
}

#[test]
fn the_files_of_a_template_are_written_all_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tree.yaml"), "mine").unwrap();
    let (file, written) = hello(&folder, SchemaCopy::With);
    assert!(matches!(written, Err(NewFilesError::Exists { path }) if path == file));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["tree.yaml"]);
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
    let unknown = template::find(Some("nothing"), None).err().unwrap();
    assert!(matches!(unknown, TemplateError::Unknown { help, .. } if help.contains("hello")));
}

#[test]
fn priced_models_are_found_by_words_of_their_names() {
    let table = PriceTable::embedded().unwrap();
    let found = price_list::find(&table, &["Claude".to_owned(), "haiku".to_owned()], NOW);
    assert!(!found.is_empty());
    for entry in &found {
        assert!(entry.model.contains("claude") && entry.model.contains("haiku"), "{}", entry.model);
        let json = serde_json::to_value(entry).unwrap();
        assert_ne!(json["price"].is_null(), json["unpriced"].is_null(), "{json}");
    }
}
