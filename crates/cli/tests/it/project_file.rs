//! The file of a project, `spinney.yaml`: what it may say, what it may not, and where it is found.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::configuration::{configure, placed};
use crate::scripts::SAYS;
use crate::test_folder::TestFolder;

/// What a run would have of an option, and where from.
fn explained(stage: &TestFolder, args: &[&str], option: &str) -> (Value, Value) {
    let args: Vec<&str> = args.iter().copied().chain(["--explain", "--json"]).collect();
    let args: Vec<&str> = match args.iter().position(|word| *word == "--") {
        // The options of `exec` stand before its program.
        Some(at) => {
            args[..1].iter().chain(&["--explain", "--json"]).chain(&args[1..at + 2]).copied().collect()
        }
        None => args,
    };
    let ended = stage.spinney(&args);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
    let line = ended.result();
    let row = line["options"].as_array().unwrap().iter().find(|row| row["option"] == option).unwrap().clone();
    (row["value"].clone(), row["from"].clone())
}

fn refused(stage: &TestFolder, args: &[&str]) -> String {
    let ended = stage.spinney(args);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{args:?}: {}", ended.err);
    placed(stage, ended.err.trim_end())
}

#[test]
fn a_default_lowers_that_of_the_user_and_never_raises_it() {
    let stage = TestFolder::stranger();
    let tree = stage.tree_with("", "", SAYS);
    let cost = |args: &[&str]| {
        let (value, from) = explained(&stage, args, "budget.cost_usd");
        format!("{} from {}", value.as_str().unwrap_or("none"), from.as_str().unwrap())
    };
    let (run, exec): ([&str; 2], [&str; 3]) = (["run", &tree], ["exec", "--", "true"]);
    assert_eq!([cost(&run), cost(&exec)], ["none from default", "none from default"]);
    configure(&stage, "budget = { cost_usd = 5 }");
    assert_eq!([cost(&run), cost(&exec)], ["5 from config.toml", "5 from config.toml"]);
    for (project, expected) in
        [("2", "2 from spinney.yaml"), ("5", "5 from config.toml"), ("900000", "5 from config.toml")]
    {
        stage.file("spinney.yaml", &format!("budget: {{ cost_usd: {project} }}\n"));
        assert_eq!([cost(&run), cost(&exec)], [expected, expected]);
    }
    // What the command line says wins, and so does the tree file.
    assert_eq!(cost(&["run", &tree, "--budget-usd", "7"]), "7 from command line");
    assert_eq!(cost(&["exec", "--budget-usd", "7", "--", "true"]), "7 from command line");
    let own = stage.tree("", SAYS);
    assert_eq!(cost(&["run", &own]), format!("1 from {own}"));
    // The root's role counts as what the file says.
    let text = fs::read_to_string(&own).unwrap();
    let of_role = text
        .replace("budget: { cost_usd: 1 }\n", "")
        .replace("tools: []", "tools: [], budget: { cost_usd: 3 }");
    assert_eq!(
        cost(&["run", &stage.file("role.yaml", &of_role)]),
        format!("3 from {}/role.yaml", stage.folder().display())
    );
}

/// A run under a default is held to it: here the default of the project is too low for the first call.
#[test]
fn a_run_is_held_to_the_default_that_applies() {
    let stage = TestFolder::stranger();
    let tree = stage.tree_with("", "", SAYS);
    configure(&stage, "budget = { cost_usd = 1, steps = 5 }");
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    stage.file("spinney.yaml", "budget: { tokens: 10 }\n");
    let halted = stage.spinney(&["run", &tree, "--json"]);
    assert_eq!(halted.code, Some(3), "{}", halted.err);
    assert_eq!(halted.result()["error"]["resource"], "tokens");
    let checked = stage.spinney(&["check", &tree]);
    assert!(checked.out.contains("the first call of `lead` may need"), "{}", checked.out);
}

#[test]
fn what_is_the_user_s_to_say_is_refused_with_the_command_that_says_it() {
    let stage = TestFolder::stranger();
    let tree = stage.tree("", SAYS);
    stage.file(
        "spinney.yaml",
        "\
budget: { cost_usd: 1 }
allow_hosts: [OpenRouter.ai, '127.0.0.1:8080']
allow_field:
  - { program: claude, name: 'tool:web_search' }
  - { program: ./it's mine, name: 'beta:x' }
prices:
  gpt-4.1: { input_per_mtok_usd: 2, output_per_mtok_usd: 8 }
  odd name: { input_per_mtok_usd: 0.1, output_per_mtok_usd: 0.2, cache_write_per_mtok_usd: 0.3 }
notify: [sh, -c, 'curl evil.example']
env_files: [.env, ~/keys.env]
templates: { review: docs/review, hello: a, odd name: b, up: ../up, root: /etc }
",
    );
    let told = refused(&stage, &["run", &tree]);
    insta::assert_snapshot!(told, @r"
    spinney: [folder]/spinney.yaml:2:1: `allow_hosts` is not allowed in the file of a project: to use it, run `spinney config add allow_hosts openrouter.ai 127.0.0.1:8080` and delete it here
      [folder]/spinney.yaml:3:1: `allow_field` is not allowed in the file of a project: to use it, run `spinney config add allow_field claude tool:web_search && spinney config add allow_field './it'\''s mine' beta:x` and delete it here
      [folder]/spinney.yaml:6:1: `prices` is not allowed in the file of a project: to use it, run `spinney config set prices.gpt-4.1 2,8 && spinney config set 'prices.odd name' 0.1,0.2,0.1,0.3` and delete it here
      [folder]/spinney.yaml:9:1: `notify` is not allowed in the file of a project: to use it, run `spinney config set notify -- sh -c 'curl evil.example'` and delete it here
      [folder]/spinney.yaml:10:1: `env_files` is not allowed in the file of a project: to use it, run `spinney config add env_files [folder]/.env '~/keys.env'` and delete it here
      [folder]/spinney.yaml:11:35: `hello` is a built-in template: use another name
      [folder]/spinney.yaml:11:45: `odd name` is not a template name: use lower-case letters, digits, `-` and `_`, at most 64 of them
      [folder]/spinney.yaml:11:58: the template `up` is not a folder of this project: write its path from here, without `..`
      [folder]/spinney.yaml:11:69: the template `root` is not a folder of this project: write its path from here, without `..`
    ");
    for args in [&["check", &tree][..], &["exec", "--", "true"], &["config"]] {
        assert_eq!(refused(&stage, args), told);
    }
    // Each of the commands does what it says.
    fs::remove_file(stage.folder().join("spinney.yaml")).unwrap();
    for line in told.lines().filter(|line| line.contains("spinney config ")) {
        let command = line.split('`').find(|part| part.starts_with("spinney config ")).unwrap();
        let command =
            command.replace("[folder]", &stage.folder().canonicalize().unwrap().display().to_string());
        let ended = stage.shell(&command);
        assert_eq!(ended.code, Some(0), "{command}: {}", ended.err);
    }
    insta::assert_snapshot!(placed(&stage, &stage.spinney(&["config"]).out), @r"
    SETTING  VALUE  FROM
    budget.cost_usd  –  default
    budget.tokens  –  default
    budget.steps  –  default
    budget.timeout  –  default
    on_low  run: halt, exec: shrink  default
    allow_hosts  openrouter.ai  config.toml
    allow_hosts  127.0.0.1:8080  config.toml
    allow_field  claude tool:web_search  config.toml
    allow_field  ./it's mine beta:x  config.toml
    allow_box  –  default
    prices.gpt-4.1  2,8  config.toml
    prices.odd name  0.1,0.2,0.1,0.3  config.toml
    notify  sh -c curl evil.example  config.toml
    env_files  [folder]/.env  config.toml
    env_files  ~/keys.env  config.toml
    redact_env  –  default
    ");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_that_names_it() {
    let stage = TestFolder::stranger();
    let tree = stage.tree("", SAYS);
    let mut told = String::new();
    for text in [
        "buget: { cost_usd: 1 }",
        "budget: { cost_usd: a lot }",
        "budget: [1]",
        "on_low: downgrade",
        "name: a tree",
        "budget: {",
        "a: 1\na: 2",
        "allow_hosts: [https://a.b]",
        "allow_hosts: []",
    ] {
        stage.file("spinney.yaml", text);
        told += &format!("{}\n", refused(&stage, &["run", &tree]));
    }
    stage.file("spinney.yaml", &format!("# {}", "x".repeat(64 * 1024)));
    told += &format!("{}\n", refused(&stage, &["run", &tree]));
    let path = stage.folder().join("spinney.yaml");
    fs::remove_file(&path).unwrap();
    symlink("/etc/passwd", &path).unwrap();
    told += &format!("{}\n", refused(&stage, &["run", &tree]));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    told += &format!("{}\n", refused(&stage, &["run", &tree]));
    insta::assert_snapshot!(told, @r"
    spinney: [folder]/spinney.yaml:1:1: unknown key `buget`: did you mean `budget`?
    spinney: [folder]/spinney.yaml:1:21: `budget.cost_usd`: `a lot` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals
    spinney: [folder]/spinney.yaml:1:9: `budget`: expected the keys of a default budget, found a list
    spinney: [folder]/spinney.yaml:1:9: `on_low`: unknown value `downgrade`: known values: halt, shrink
    spinney: [folder]/spinney.yaml:1:1: unknown key `name`: known keys: budget, on_low, templates, allow_hosts, allow_field, allow_box, prices, notify, env_files
    spinney: [folder]/spinney.yaml:1:9: unclosed bracket '{'
    spinney: [folder]/spinney.yaml:2:1: duplicate key `a`: delete one of them
    spinney: [folder]/spinney.yaml:1:15: `allow_hosts`: `https://a.b` is not a host: leave out the scheme and the path; write a name or an address with an optional port, such as openrouter.ai or 127.0.0.1:8080
    spinney: [folder]/spinney.yaml:1:1: `allow_hosts` is not allowed in the file of a project: delete it
    spinney: cannot read [folder]/spinney.yaml: it has more than 65536 bytes
    spinney: cannot read [folder]/spinney.yaml: it is a link
    spinney: cannot read [folder]/spinney.yaml: it is a folder: name a file in it
    ");
    fs::remove_dir(&path).unwrap();
    for empty in ["", "# nothing\n", "\u{feff}", "budget: {}\r\n"] {
        stage.file("spinney.yaml", empty);
        assert_eq!(stage.spinney(&["run", &tree]).code, Some(0), "{empty:?}");
    }
}

#[test]
fn it_is_found_up_to_the_root_of_the_repository_and_not_above() {
    let stage = TestFolder::stranger();
    let tree = fs::read_to_string(stage.tree_with("", "", SAYS)).unwrap();
    fs::create_dir_all(stage.folder().join("work/repo/deep/er")).unwrap();
    let file = stage.file("work/repo/deep/er/tree.yaml", &tree);
    stage.file("work/repo/deep/er/tree.script.yaml", SAYS);
    let steps = || explained(&stage, &["run", &file], "budget.steps").0;
    stage.file("work/spinney.yaml", "budget: { steps: 1 }");
    stage.file("work/repo/spinney.yaml", "budget: { steps: 2 }");
    // Outside of a repository only the folder itself counts.
    assert_eq!(steps(), Value::Null);
    fs::create_dir(stage.folder().join("work/repo/.git")).unwrap();
    assert_eq!(steps(), "2");
    stage.file("work/repo/deep/spinney.yaml", "budget: { steps: 3 }");
    assert_eq!(steps(), "3");
    // A tree file may have its name; it is not a project file then.
    let own = stage.file("work/repo/spinney.yaml", &tree);
    stage.file("work/repo/tree.script.yaml", SAYS);
    assert_eq!(stage.spinney(&["run", &own]).code, Some(0));
}

/// A tree file may have the name of a project's file, and is none.
#[test]
fn a_tree_file_with_its_name_is_left_alone() {
    let stage = TestFolder::stranger();
    let tree = stage.tree("", SAYS);
    fs::rename(&tree, stage.folder().join("spinney.yaml")).unwrap();
    for args in
        [&["config"][..], &["run", "spinney.yaml"], &["init", "new"], &["exec", "--explain", "--", "true"]]
    {
        let ended = stage.spinney(args);
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
    }
}
