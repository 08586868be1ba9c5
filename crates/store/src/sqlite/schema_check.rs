//! Compares the schema of a file with the one that our steps make. SQLite runs what a schema contains (triggers, views,
//! expressions in indexes, columns and checks), so one that another program changed is refused before anything is read.

use rusqlite::Connection;

/// An index that versions 2 and 3 made and a later step removes.
const REMOVED: &str = "CREATE INDEX catalog_by_tree ON catalog (tree)";

/// Most characters of a name in a message: it may be a stranger's.
const NAME_CHARS_MAX: usize = 60;

/// A row of a schema.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    name: String,
    /// `table`, `index`, `view` or `trigger`. A trigger may have the name of a table.
    kind: String,
    table: String,
    /// None for an index that SQLite makes itself.
    sql: Option<String>,
}

/// How the schema differs from the one that these steps make. None if it does not. `known` is the hash of that schema, if
/// it is known: making it takes as long as opening a journal.
pub(super) fn change(
    connection: &Connection,
    steps: &[&str],
    known: Option<&str>,
) -> rusqlite::Result<Option<String>> {
    let mut found = objects(connection)?;
    if known.is_some_and(|known| hash(&found) == known) {
        return Ok(None);
    }
    let made = made_by(steps)?;
    found.retain(|object| object.sql.as_deref() != Some(REMOVED));
    if found == made {
        return Ok(None);
    }
    let is_in = |object: &Object, others: &[Object]| {
        others.iter().any(|other| (&other.name, &other.kind) == (&object.name, &object.kind))
    };
    if let Some(Object { name, kind, .. }) = found.iter().find(|object| !is_in(object, &made)) {
        let article = if kind == "index" { "an" } else { "a" };
        let name: String = name.chars().take(NAME_CHARS_MAX).collect();
        return Ok(Some(format!("it has {article} {kind} `{name}`")));
    }
    if let Some(Object { name, kind, .. }) = made.iter().find(|object| !is_in(object, &found)) {
        return Ok(Some(format!("its {kind} `{name}` is missing")));
    }
    let other = found.iter().find(|object| !made.contains(object)).or(found.first());
    Ok(other.map(|Object { name, kind, .. }| format!("its {kind} `{name}` was changed")))
}

fn made_by(steps: &[&str]) -> rusqlite::Result<Vec<Object>> {
    let made = Connection::open_in_memory()?;
    for step in steps {
        made.execute_batch(step)?;
    }
    objects(&made)
}

/// All rows, sorted.
fn objects(connection: &Connection) -> rusqlite::Result<Vec<Object>> {
    let mut rows = connection.prepare("SELECT name, type, tbl_name, sql FROM main.sqlite_schema")?;
    let rows = rows.query_map([], |row| {
        Ok(Object { name: row.get(0)?, kind: row.get(1)?, table: row.get(2)?, sql: row.get(3)? })
    })?;
    let mut objects = rows.collect::<rusqlite::Result<Vec<Object>>>()?;
    objects.sort_unstable();
    Ok(objects)
}

/// Over every field of every object, each with its length.
fn hash(objects: &[Object]) -> String {
    let mut hasher = blake3::Hasher::new();
    for Object { name, kind, table, sql } in objects {
        for field in [name, kind, table, sql.as_ref().unwrap_or(&String::new())] {
            hasher.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;

    #[test]
    fn the_hash_of_the_newest_schema_is_that_of_what_the_steps_make() {
        assert_eq!(hash(&made_by(&schema::STEPS).unwrap()), schema::NEWEST);
    }

    const STEPS: [&str; 2] = ["CREATE TABLE a (b INTEGER);", "CREATE INDEX i ON a (b);"];

    fn changed(sql: &str) -> Option<String> {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch(sql).unwrap();
        change(&file, &STEPS, None).unwrap()
    }

    #[test]
    fn a_schema_is_the_one_that_its_steps_make_or_the_first_change_is_named() {
        let same = STEPS.concat();
        let with = |more: &str| changed(&format!("{same}{more}"));
        assert_eq!(changed(&same), None);
        assert_eq!(changed(STEPS[0]).as_deref(), Some("its index `i` is missing"));
        assert_eq!(with("CREATE INDEX k ON a (b)").as_deref(), Some("it has an index `k`"));
        // It does not hide behind the table.
        let trigger = with("CREATE TRIGGER a AFTER INSERT ON a BEGIN SELECT 1; END");
        assert_eq!(trigger.as_deref(), Some("it has a trigger `a`"));
        // White space is part of a statement: only SQLite itself writes it.
        assert_eq!(changed(&same.replace("a (b ", "a ( b ")).as_deref(), Some("its table `a` was changed"));
        let twice = "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM sqlite_schema";
        assert!(with(twice).is_some_and(|change| change.ends_with("was changed")));
    }

    #[test]
    fn an_index_of_older_versions_may_be_there_as_they_made_it() {
        let table = "CREATE TABLE catalog (tree, kind);";
        let other = "CREATE INDEX catalog_by_tree ON catalog (kind)";
        for (index, expected) in [(REMOVED, None), (other, Some("it has an index `catalog_by_tree`"))] {
            let file = Connection::open_in_memory().unwrap();
            file.execute_batch(&format!("{table} {index}")).unwrap();
            assert_eq!(change(&file, &[table], None).unwrap().as_deref(), expected);
        }
    }
}
