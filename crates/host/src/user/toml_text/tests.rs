//! Every change in every way of writing the same thing, with comments around it.

use super::*;

fn changed(text: &str, change: impl Fn(&mut TomlText) -> Result<()>) -> String {
    let mut changed = TomlText::new(text.to_owned());
    change(&mut changed).unwrap();
    if text.contains('\n') {
        let mut windows = TomlText::new(text.replace('\n', "\r\n"));
        change(&mut windows).unwrap();
        assert_eq!(windows.as_str(), changed.as_str().replace('\n', "\r\n"), "with the line ends of Windows");
    }
    toml::from_str::<toml::Table>(changed.as_str())
        .unwrap_or_else(|error| panic!("{error}\n{}", changed.as_str()));
    changed.as_str().to_owned()
}

#[test]
fn a_value_is_replaced_where_it_is_written() {
    for (text, expected) in [
        ("budget = { cost_usd = 5 } # mine\n", "budget = { cost_usd = 7 } # mine\n"),
        (
            "# a\n[budget] # b\n  cost_usd=5# c\nsteps = 1\n",
            "# a\n[budget] # b\n  cost_usd=7# c\nsteps = 1\n",
        ),
        ("budget.cost_usd = 5\n[prices]\n", "budget.cost_usd = 7\n[prices]\n"),
        ("budget.\"cost_usd\" = 5", "budget.\"cost_usd\" = 7"),
    ] {
        assert_eq!(changed(text, |text| text.set(&["budget", "cost_usd"], "7")), expected);
    }
}

#[test]
fn a_new_key_joins_its_table_as_that_is_written() {
    for (text, expected) in [
        ("", "[budget]\nsteps = 7\n"),
        ("# mine\n", "# mine\n\n[budget]\nsteps = 7\n"),
        ("on_low = 'halt'", "on_low = 'halt'\n\n[budget]\nsteps = 7\n"),
        ("budget = { cost_usd = 5 } # mine\n", "budget = { cost_usd = 5, steps = 7 } # mine\n"),
        ("budget = {}\n", "budget = { steps = 7 }\n"),
        ("[budget]\n", "[budget]\nsteps = 7\n"),
        ("[budget] # x\n\n[prices]\n", "[budget] # x\nsteps = 7\n\n[prices]\n"),
        (
            "[budget]\n  cost_usd = 5 # five\n  # more\n\n[prices]\n",
            "[budget]\n  cost_usd = 5 # five\n  steps = 7\n  # more\n\n[prices]\n",
        ),
        (
            "budget.cost_usd = 5 # five\non_low = 'halt'\n",
            "budget.cost_usd = 5 # five\nbudget.steps = 7\non_low = 'halt'\n",
        ),
    ] {
        assert_eq!(changed(text, |text| text.set(&["budget", "steps"], "7")), expected);
    }
}

#[test]
fn a_new_key_of_the_file_comes_before_every_header() {
    for (text, expected) in [
        ("", "on_low = 7\n"),
        ("# mine", "# mine\non_low = 7\n"),
        ("a = 1 # one\n\n[budget]\n", "a = 1 # one\non_low = 7\n\n[budget]\n"),
        (
            "# mine\n\n# the budget\n[budget]\nsteps = 1\n",
            "# mine\n\non_low = 7\n\n# the budget\n[budget]\nsteps = 1\n",
        ),
        ("[budget]\nsteps = 1\n", "on_low = 7\n\n[budget]\nsteps = 1\n"),
        ("[prices.a]\nx = 1\n[[allow_field]]\n", "on_low = 7\n\n[prices.a]\nx = 1\n[[allow_field]]\n"),
        (
            "a = [\n  1,\n]\nbudget.steps = 1\n[[f]]\n",
            "a = [\n  1,\n]\nbudget.steps = 1\non_low = 7\n[[f]]\n",
        ),
    ] {
        assert_eq!(changed(text, |text| text.set(&["on_low"], "7")), expected);
    }
}

#[test]
fn an_item_joins_its_list_and_leaves_every_comment_with_its_own() {
    for (text, expected) in [
        ("", "hosts = ['x']\n"),
        ("hosts = []\n", "hosts = ['x']\n"),
        ("hosts = ['a'] # mine\n", "hosts = ['a', 'x'] # mine\n"),
        ("hosts = ['a', ]\n", "hosts = ['a', 'x', ]\n"),
        ("hosts = [\n  'a', # one, two\n]\n", "hosts = [\n  'a', # one, two\n  'x',\n]\n"),
        ("hosts = [\n  'a' # one\n]\n", "hosts = [\n  'a', # one\n  'x'\n]\n"),
        ("hosts = [\n  'a', 'b' ]\n", "hosts = [\n  'a', 'b', 'x' ]\n"),
        ("hosts = [ # none, yet\n]\n", "hosts = ['x' # none, yet\n]\n"),
    ] {
        assert_eq!(changed(text, |text| text.add_item("hosts", "'x'")), expected);
    }
}

#[test]
fn an_item_leaves_its_list_with_its_comma() {
    for (text, at, expected) in [
        ("hosts = ['a']\n", 0, "hosts = []\n"),
        ("hosts = ['a', 'b', 'c'] # x\n", 0, "hosts = ['b', 'c'] # x\n"),
        ("hosts = ['a', 'b', 'c']\n", 1, "hosts = ['a', 'c']\n"),
        ("hosts = ['a', 'b', 'c']\n", 2, "hosts = ['a', 'b']\n"),
        ("hosts = [\n  'a', # one, two\n  'b',\n  'c'\n]\n", 1, "hosts = [\n  'a', # one, two\n  'c'\n]\n"),
        ("hosts = [\n  'a', # one, two\n  'b'\n]\n", 1, "hosts = [\n  'a' # one, two\n]\n"),
        ("hosts = [\n  'a', # one\n  'b',\n]\n", 0, "hosts = [\n  # one\n  'b',\n]\n"),
    ] {
        assert_eq!(changed(text, |text| text.remove_item("hosts", at)), expected, "{text}");
    }
}

#[test]
fn a_key_leaves_with_its_line_and_a_table_with_all_of_its_lines() {
    for (text, path, expected) in [
        ("a = 1 # one\nb = 2\n", &["a"][..], "b = 2\n"),
        ("a = [\n 1,\n]\nb = 2\n", &["a"], "b = 2\n"),
        ("t = { a = 1, b = 2 } # t\n", &["t", "a"], "t = { b = 2 } # t\n"),
        ("t = { a = 1, b = 2 }\n", &["t", "b"], "t = { a = 1 }\n"),
        ("t = { a = 1 }\n", &["t", "a"], "t = {  }\n"),
        ("[t]\na = 1\n# kept\nb = 2\n[u]\nc = 3\n", &["t"], "# kept\n[u]\nc = 3\n"),
        ("[t]\na = 1\nb = 2\n", &["t", "b"], "[t]\na = 1\n"),
        ("t.a = 1\nt.b = 2\nc = 3\n", &["t"], "c = 3\n"),
        ("t.a = 1\nt.b = 2\n", &["t", "a"], "t.b = 2\n"),
        ("[t.x]\na = 1\n[u]\n[t.y]\nb = 2\n", &["t"], "[u]\n"),
        ("[t.x]\na = 1\n[t.y]\nb = 2\n", &["t", "x"], "[t.y]\nb = 2\n"),
        ("[[f]]\na = 1\n\n[[f]]\na = 2\n", &["f"], ""),
        ("a = 1\n", &["b"], "a = 1\n"),
    ] {
        assert_eq!(changed(text, |text| text.remove(path)), expected, "{text}");
    }
}

#[test]
fn tables_of_a_list_come_and_go_in_both_ways_of_writing() {
    let entries = [("p", "'x'".to_owned()), ("n", "'y'".to_owned())];
    for (text, expected) in [
        ("", "[[f]]\np = 'x'\nn = 'y'\n"),
        ("# mine\n[[f]]\np = 'a'", "# mine\n[[f]]\np = 'a'\n\n[[f]]\np = 'x'\nn = 'y'\n"),
        ("f = []\n", "f = [{ p = 'x', n = 'y' }]\n"),
        ("f = [{ p = 'a' }]\n", "f = [{ p = 'a' }, { p = 'x', n = 'y' }]\n"),
    ] {
        assert_eq!(changed(text, |text| text.add_table_item("f", &entries)), expected);
    }
    for (text, expected) in [
        (
            "# one\n[[f]]\np = 'a'\n\n# two\n[[f]] # b\np = 'b' # c\nn = 1\n# end\n",
            "# one\n[[f]]\np = 'a'\n\n# two\n# end\n",
        ),
        ("f = [{ p = 'a' }, { p = 'b' }]\n", "f = [{ p = 'a' }]\n"),
    ] {
        assert_eq!(changed(text, |text| text.remove_item("f", 1)), expected);
    }
}

#[test]
fn a_new_table_is_written_as_its_neighbours_are() {
    let entries = [("i", "1".to_owned()), ("o", "2".to_owned())];
    for (text, expected) in [
        ("", "[prices.\"b.c\"]\ni = 1\no = 2\n"),
        ("[prices]\n", "[prices]\n\n[prices.\"b.c\"]\ni = 1\no = 2\n"),
        ("[prices.a]\ni = 1\n[z]\n", "[prices.a]\ni = 1\n[z]\n\n[prices.\"b.c\"]\ni = 1\no = 2\n"),
        ("[prices]\na = { i = 1 }\n[z]\n", "[prices]\na = { i = 1 }\n\"b.c\" = { i = 1, o = 2 }\n[z]\n"),
        ("prices.a.i = 1\nz = 1\n", "prices.a.i = 1\nprices.\"b.c\" = { i = 1, o = 2 }\nz = 1\n"),
        ("prices = { a = { i = 1 } }\n", "prices = { a = { i = 1 }, \"b.c\" = { i = 1, o = 2 } }\n"),
    ] {
        assert_eq!(changed(text, |text| text.add_table(&["prices", "b.c"], &entries)), expected);
    }
}

#[test]
fn names_and_texts_are_written_so_that_they_are_read_back() {
    for odd in ["a", "a.b", "", "a\"b\\c", "a\nb", "a\u{7f}\u{1b}", "ä 木", "'", "# a"] {
        let line = format!("{} = {}", key(odd), text(odd));
        let read: toml::Table = toml::from_str(&line).unwrap_or_else(|error| panic!("{error} {line}"));
        assert_eq!(read.get(odd).and_then(toml::Value::as_str), Some(odd), "{line}");
    }
}
