//! What to ask before a home that this user did not make starts a program or sends a key.

use std::cmp::Reverse;
use std::fmt;
use std::path::{Path, PathBuf};

use spinney::tree::stored;
use spinney_journal::{Head, Journal, JournalFault};
use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::primitives::{BlobHash, TreeId};
use spinney_view::wording::{counted, short_id};

use super::TrustError;
use super::boxes::BoxNeeds;
use super::egress::{self, Egress, InputValues};
use super::known_homes::{self, HomeOrigin, KnownHome};
use super::tree_marks::{self, TreeMark};
use crate::error_text::with_causes;
use crate::exec::options::RunOptions;
use crate::home::{self, side_journals, tree_copies};

/// The longest line of a question. More would not be read, and what is not read is not agreed to.
const LINE_CHARS_MAX: usize = 2_000;
/// Most other trees that a question names.
const OTHERS_MAX: usize = 8;

/// A tree to continue, and what it is started from: the very bytes that were read.
pub struct OldTree<'a> {
    /// Its own home.
    pub home: &'a Path,
    /// Its journal.
    pub journal: &'a dyn Journal,
    /// Its head there.
    pub head: &'a Head,
    /// The hash of what it is started from.
    pub source: Option<BlobHash>,
}

/// A question to the user: whether a home, or a tree in it, may do what it would do.
#[derive(Debug)]
pub struct HomeQuestion {
    home: PathBuf,
    why: String,
    does: Vec<String>,
    others: OtherTrees,
    /// The tree that would be continued.
    tree: Option<AskedTree>,
}

#[derive(Debug)]
struct AskedTree {
    head: Head,
    source: Option<BlobHash>,
    known: Option<KnownHome>,
    /// Hosts that were allowed before.
    hosts: Vec<String>,
}

/// What is known about a tree before it is continued.
pub enum OldTreeTrust {
    /// It is as this user left it.
    AsLeft(Option<TreeMark>),
    /// It may not be, so the user is asked.
    Ask(Box<HomeQuestion>),
}

/// Makes the home of a new tree, or says what to ask before it is used. `does` says what the tree would start or send; one
/// that does neither asks nothing.
pub async fn for_new_tree(home: &Path, does: &[String]) -> Result<Option<HomeQuestion>, TrustError> {
    match known_homes::make(home) {
        HomeOrigin::Foreign if !does.is_empty() => {
            home::check(home)?;
            return Ok(Some(HomeQuestion {
                home: home.to_owned(),
                why: not_made(home),
                does: does.to_vec(),
                others: others(home, None).await,
                tree: None,
            }));
        }
        HomeOrigin::New { unlisted: Some(error) } => {
            tracing::warn!("this home could not be added to your list of homes: {}", with_causes(&error));
        }
        HomeOrigin::New { unlisted: None } | HomeOrigin::Known | HomeOrigin::Foreign => {}
    }
    Ok(None)
}

/// Whether a tree is as this user left it, and what is recorded of it; or what to ask before it is continued.
pub async fn for_old_tree(tree: &OldTree<'_>, does: &[String]) -> Result<OldTreeTrust, TrustError> {
    let OldTree { home, journal, head, source } = tree;
    let above = side_journals::above(home);
    let known = KnownHome::find(above)?;
    let mark = known.as_ref().map(|known| known.mark(head.tree)).transpose()?.flatten();
    let id = short_id(head.tree);
    let why = match (&known, &mark) {
        (None, _) => not_made(above),
        (Some(_), None) => format!("tree {id} in {} was not started by you on this machine", above.display()),
        (Some(_), Some(mark)) if !mark.is_in(*journal, head).await? => tree_marks::missing(mark, head),
        (Some(_), Some(mark)) if !mark.has_source(source.as_ref()) => {
            format!("the files of tree {id} were changed since it started")
        }
        (Some(_), Some(mark)) if tree_marks::has_unrecorded_raise(mark, *journal, head).await? => {
            format!("ceilings of tree {id} were raised, and this machine has no record of that")
        }
        (Some(_), Some(_)) => return Ok(OldTreeTrust::AsLeft(mark)),
    };
    let others = if known.is_none() { others(above, Some(head.tree)).await } else { OtherTrees::default() };
    let hosts = mark.map(|mark| mark.hosts).unwrap_or_default();
    let tree = AskedTree { head: (*head).clone(), source: source.clone(), known, hosts };
    Ok(OldTreeTrust::Ask(Box::new(HomeQuestion {
        home: above.to_owned(),
        why,
        does: [does, &[may_spend(*journal, head).await?]].concat(),
        others,
        tree: Some(tree),
    })))
}

impl HomeQuestion {
    /// The home that it is about.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Whether a line is too long to be read: it is not shown whole, and so it cannot be agreed to.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        self.does.iter().any(|line| line.chars().count() > LINE_CHARS_MAX)
    }

    /// Records a yes: the home is listed with the trees that were shown. Returns what is recorded of the tree.
    pub fn accept(self) -> Result<Option<TreeMark>, TrustError> {
        let Self { home, others, tree, .. } = self;
        let known = match tree.as_ref().and_then(|tree| tree.known.clone()) {
            Some(known) => Some(known),
            None => list(&home, &others),
        };
        let (Some(known), Some(tree)) = (known, tree) else { return Ok(None) };
        tree_marks::set(&known, &tree.head, tree.source.as_ref(), tree.hosts)?;
        Ok(known.mark(tree.head.tree)?)
    }
}

impl fmt::Display for HomeQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, does, others, .. } = self;
        let short_line = |line: &String| -> String {
            let line: String = line.chars().take(LINE_CHARS_MAX).collect();
            format!("\n  - {}", line.replace('\n', " "))
        };
        write!(f, "{why}. It would{}", does.iter().map(short_line).collect::<String>())?;
        if !others.shown.is_empty() {
            f.write_str("\nThis home also has unfinished trees, and a yes covers them as well. They would")?;
            others.shown.iter().try_for_each(|other| f.write_str(&short_line(&other.does)))?;
        }
        if others.left_out > 0 {
            let more = counted(others.left_out as u64, "more unfinished tree");
            write!(f, "\nYou will be asked about {more}.")?;
        }
        Ok(())
    }
}

/// What is recorded of a tree that is as this user left it.
pub async fn mark_of(tree: &OldTree<'_>) -> Result<Option<TreeMark>, TrustError> {
    let OldTree { home, journal, head, source } = tree;
    let Some(mark) = tree_marks::find(home, head.tree)? else { return Ok(None) };
    let is_same = mark.is_in(*journal, head).await?
        && mark.has_source(source.as_ref())
        && !tree_marks::has_unrecorded_raise(&mark, *journal, head).await?;
    Ok(is_same.then_some(mark))
}

fn not_made(home: &Path) -> String {
    format!("{} was not created by you on this machine", home.display())
}

/// The ceiling in the journal says how much of the user's money may go.
async fn may_spend(journal: &dyn Journal, head: &Head) -> Result<String, JournalFault> {
    let snapshot = stored(journal, head.tree).await?.snapshot;
    let root = snapshot.agents.iter().find(|agent| agent.parent.is_none());
    let limit = root.and_then(|root| root.limit.as_ref()?.get(Resource::Cost));
    let spent = root.map_or(0, |root| root.spent.get(Resource::Cost));
    Ok(match limit {
        Some(limit) => format!("spend up to {} more", usd(limit.saturating_sub(spent))),
        None => "spend any amount of money: it has no ceiling".to_owned(),
    })
}

/// An unfinished tree of a home that a question is about.
#[derive(Debug)]
struct OtherTree {
    head: Head,
    source: Option<BlobHash>,
    does: String,
}

/// The unfinished trees of a home that would start or send something.
#[derive(Debug, Default)]
struct OtherTrees {
    /// The newest ones, as many as a question can show.
    shown: Vec<OtherTree>,
    /// Those that are not trusted with the rest: there is no room for them, or they cannot be read.
    left_out: usize,
}

async fn others(home: &Path, except: Option<TreeId>) -> OtherTrees {
    let places = side_journals::journals(home);
    let mut others = OtherTrees::default();
    for place in places {
        let Ok(journal) = home::open_read_only(&place) else {
            others.left_out += 1;
            continue;
        };
        let Ok(heads) = journal.heads(&[]).await else {
            others.left_out += 1;
            continue;
        };
        let open = heads.into_iter().filter(|head| !head.state.is_over() && Some(head.tree) != except);
        for head in open {
            match other(&place, &journal, head).await {
                Ok(Some(other)) if other.does.chars().count() <= LINE_CHARS_MAX => others.shown.push(other),
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => others.left_out += 1,
            }
        }
    }
    others.shown.sort_by_key(|other| Reverse((other.head.started, other.head.tree)));
    others.left_out += others.shown.len().saturating_sub(OTHERS_MAX);
    others.shown.truncate(OTHERS_MAX);
    others
}

/// None if it would neither start nor send anything.
async fn other(place: &Path, journal: &dyn Journal, head: Head) -> Result<Option<OtherTree>, TrustError> {
    let id = short_id(head.tree);
    let (does, source) = if side_journals::is_of_exec(place).await {
        let options = RunOptions::read(place, journal, head.tree).await?;
        (options.starts(&options.program()?), options.source)
    } else {
        let kept = tree_copies::read(place, journal, head.tree).await?;
        let egress = kept.called.as_ref();
        let egress = egress.map(|called| Egress::all(&called.file, &called.models, InputValues::Known));
        let boxes = BoxNeeds::of_stored(journal, head.tree).await?.lines();
        let sent = egress::sent(&egress.unwrap_or_default());
        (sent.into_iter().chain(boxes).collect(), kept.source)
    };
    if does.is_empty() {
        return Ok(None);
    }
    let does = format!("{}; {} (tree {id})", does.join("; "), may_spend(journal, &head).await?);
    Ok(Some(OtherTree { head, source, does }))
}

/// Lists a home that the user trusts, with the trees that they were shown.
fn list(home: &Path, others: &OtherTrees) -> Option<KnownHome> {
    let listed = || -> Result<KnownHome, TrustError> {
        let known = KnownHome::list(home)?;
        for OtherTree { head, source, .. } in &others.shown {
            tree_marks::set(&known, head, source.as_ref(), Vec::new())?;
        }
        Ok(known)
    };
    let warn = |error: &TrustError| tracing::warn!("your answer could not be saved: {}", with_causes(error));
    listed().inspect_err(warn).ok()
}
