//! Hand-written files that are not tree files: the same formats, and errors that name the key.

use serde::Deserialize;
use spinney::tree_file::KeyFile;
use spinney_kernel::definition::Usd;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Keys {
    most: Option<Usd>,
    names: Vec<String>,
    of: Option<Inner>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    count: u32,
}

fn error(name: &str, text: &str) -> String {
    KeyFile::<Keys>::parse(name, text).unwrap_err().to_string()
}

#[test]
fn every_format_gives_the_same_keys() {
    let keys = Keys {
        most: Some("0.5".parse().unwrap()),
        names: vec!["a".to_owned()],
        of: Some(Inner { count: 3 }),
    };
    for (name, text) in [
        ("k.yaml", "most: 0.5\nnames: [a]\nof: { count: 3 }\n"),
        ("k.toml", "\u{feff}most = 0.5\r\nnames = ['a']\r\n[of]\r\ncount = 3\r\n"),
        ("k.json", r#"{ "most": 0.5, "names": ["a"], "of": { "count": 3 } }"#),
    ] {
        assert_eq!(KeyFile::<Keys>::parse(name, text).unwrap().keys, keys, "{name}");
    }
    for (name, text) in
        [("k.yaml", ""), ("k.yaml", "# nothing\n"), ("k.toml", "# nothing\n"), ("k.json", "{}")]
    {
        assert_eq!(KeyFile::<Keys>::parse(name, text).unwrap().keys, Keys::default(), "{name}");
    }
}

#[test]
fn an_error_names_its_place_and_its_key() {
    insta::assert_snapshot!(error("k.toml", "mots = 1"), @"k.toml:1:1: unknown key `mots`: did you mean `most`?");
    insta::assert_snapshot!(error("k.toml", "most = 'much'"), @"k.toml:1:8: `most`: `much` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals");
    insta::assert_snapshot!(error("k.toml", "[of]\ncount = 'x'"), @"k.toml:2:9: `of.count`: expected u32, found text `x`");
    insta::assert_snapshot!(error("k.toml", "[of]"), @"k.toml:1:1: `count` is missing: write `count = …`");
    insta::assert_snapshot!(error("k.yaml", "of: {}"), @"k.yaml:1:5: `count` is missing: write `count: …`");
    insta::assert_snapshot!(error("k.yaml", "names: [a, 1]"), @"k.yaml:1:12: `names`: expected text, found the number 1: put it in quotes");
    insta::assert_snapshot!(error("k.toml", "most = 1\nmost = 2"), @"k.toml:2:1: duplicate key `most`: delete one of them");
    insta::assert_snapshot!(error("k.txt", "most = 1"), @"k.txt:1:1: the file's name does not show its format: end it in .yaml, .yml, .json or .toml");
    let file = KeyFile::<Keys>::parse("k.yaml", "most: 1\nnames: []\n").unwrap();
    insta::assert_snapshot!(file.bad_key(&["names"], "it is empty"), @"k.yaml:2:1: it is empty");
    insta::assert_snapshot!(file.bad_key(&["of"], "it is not there"), @"k.yaml:1:1: it is not there");
}
