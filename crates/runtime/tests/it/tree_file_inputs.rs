//! Inputs of a tree file: declared, given, and put into texts.

use spinney::TreeFile;
use spinney::tree_file::NoCatalog;

const FILE: &str = "\
name: t
goal: Write about {{ inputs.topic }} for {{ inputs.readers.age }}.
inputs:
  topic: {}
  readers: { type: json, default: { age: 10 } }
  tone: { default: plain, env: TONE, description: how it sounds }
models: { m: { provider: scripted, script: s.yaml } }
agents: { a: { model: m, prompt: 'Be {{ inputs.tone }}.' } }
";

fn given(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The goal and the prompt, or everything that is wrong.
fn filled(set: &[(&str, &str)], env: Option<&str>) -> String {
    let file = TreeFile::parse("tree.yaml", FILE).unwrap();
    let env = |name: &str| env.filter(|_| name == "TONE").map(str::to_owned);
    match file.with_inputs(&given(set), &env) {
        Ok(file) => {
            let role = &file.definition.roles["a"];
            format!("{} | {}", file.definition.goal, role.turns.as_ref().unwrap().prompt.text)
        }
        Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

#[test]
fn what_is_given_goes_before_the_environment_and_that_before_the_default() {
    assert_eq!(filled(&[("topic", "bees")], None), "Write about bees for 10. | Be plain.");
    assert_eq!(filled(&[("topic", "bees")], Some("loud")), "Write about bees for 10. | Be loud.");
    let all = [("topic", "a=b {{ x }}"), ("readers", "{\"age\": 3}"), ("tone", "sad")];
    assert_eq!(filled(&all, Some("loud")), "Write about a=b {{ x }} for 3. | Be sad.");
}

#[test]
fn unknown_missing_doubled_and_bad_inputs_are_errors_with_the_remedy() {
    insta::assert_snapshot!(filled(&[("topc", "bees")], None), @r"
    the file has no input `topc`: did you mean `topic`?
    input `topic` has no value: give it one
    ");
    insta::assert_snapshot!(filled(&[("topic", "a"), ("topic", "b")], None), @"input `topic` is given twice: keep one");
    insta::assert_snapshot!(filled(&[("topic", "a"), ("readers", "{")], None), @r#"input `readers` is not JSON: EOF while parsing an object at line 1 column 1; write JSON in quotes, such as '[1, 2]' or '"text"'"#);
    insta::assert_snapshot!(filled(&[("topic", "a"), ("readers", "{}")], None), @"the goal: `inputs.readers.age` is not defined: test it with `is defined`, or give it a value with `| default(…)`");
    let long = "x".repeat(40_000);
    insta::assert_snapshot!(filled(&[("topic", &long)], None), @"input `topic` has 40000 bytes, more than 32768");
    let plain = TreeFile::parse(
        "tree.yaml",
        "name: t\nmodels: { m: { provider: scripted, script: s.yaml } }\nagents: { a: { model: m } }\n",
    )
    .unwrap();
    let errors = plain.with_inputs(&given(&[("topic", "a")]), &|_| None).unwrap_err();
    assert_eq!(errors[0].to_string(), "the file has no input `topic`: there are no inputs");
}

/// A file without inputs has no templates, so its texts may hold anything.
#[test]
fn texts_of_a_file_without_inputs_are_taken_as_they_are() {
    let text = "name: t\ngoal: 'Explain {{ x }} and {% y'\nmodels: { m: { provider: scripted, script: s.yaml } }\nagents: { a: { model: m } }\n";
    let file = TreeFile::parse("tree.yaml", text).unwrap().with_inputs(&[], &|_| None).unwrap();
    assert_eq!(file.definition.goal, "Explain {{ x }} and {% y");
}

fn errors(from: &str, to: &str) -> String {
    let text = FILE.replacen(from, to, 1);
    TreeFile::parse_whole("tree.yaml", &text, &NoCatalog).unwrap_err().to_string()
}

#[test]
fn wrong_inputs_and_texts_are_errors_with_their_place() {
    insta::assert_snapshot!(errors("inputs.topic", "inputs.topik"), @"tree.yaml:2:7: unknown input `topik`: did you mean `topic`?");
    insta::assert_snapshot!(errors("inputs.topic", "topic"), @"tree.yaml:2:7: unknown name `topic`: write `inputs.topic`");
    insta::assert_snapshot!(errors("topic: {}", "topic: bees"), @"tree.yaml:4:10: expected the keys of an input, found text `bees`: write it like `{ default: … }`");
    insta::assert_snapshot!(errors("default: plain", "default: 5"), @"tree.yaml:6:20: the default of text `tone` is not text: put it in quotes, or write `type: json`");
    insta::assert_snapshot!(errors("topic: {}", "'the topic': {}"), @"
    tree.yaml:2:7: unknown input `topic`: known inputs: readers, the topic, tone
    tree.yaml:4:3: `the topic` is not a valid input name: write letters, digits and _, with a letter first
    ");
    insta::assert_snapshot!(errors("env: TONE", "env: sk-123"), @"tree.yaml:6:32: this is not the name of an environment variable: keys do not belong in files: write a name such as MY_API_KEY, and set it in the shell");
    insta::assert_snapshot!(errors("default: { age: 10 }", "description: 7"), @"tree.yaml:5:39: expected text, found the number 7: put it in quotes");
    assert!(
        errors("type: json", "type: yaml")
            .starts_with("tree.yaml:5:20: unknown value `yaml`: known values: text, json")
    );
    assert!(errors("{{ inputs.topic }}", "{{ inputs.topic").starts_with("tree.yaml:2:7: bad template: "));
}
