//! Pages made from the registries, with a write and a check mode.
//!
//! For: `docs/registries.md`, the table of every policy, partitioner, layout, characterizer,
//! separation and reclaim policy with its settings, `docs/devices.md` ([`devices`]),
//! `docs/formats.md` ([`formats`]), `docs/stack-file.md` ([`stack_file`]), the schema of stack
//! files ([`stack_schema`]), the documents that commands return ([`answers`], [`python`]), and the
//! options of commands in Python ([`options`]). Must never know: what they do beyond their entries.
//! A page that differs from the code is stale.

mod answers;
mod devices;
mod formats;
mod key_schema;
mod options;
mod python;
mod shapes;
mod stack_file;
mod stack_schema;

use cachewright_types::Key;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/registries.md";

/// One registered scheme, whatever its stage.
struct RegisteredScheme {
    name: &'static str,
    doc: &'static str,
    source: &'static str,
    needs: String,
    settings: Vec<Key>,
}

/// Writes the stale pages below `root` and removes modules that are made no longer, or only names
/// them when `check` is set.
pub fn pages(root: &Path, check: bool) -> io::Result<Vec<String>> {
    let mut stale = Vec::new();
    let pages = [
        (PAGE, page_of_registries()),
        (devices::PAGE, devices::page()),
        (formats::PAGE, formats::page()),
        (stack_file::PAGE, stack_file::page()),
        (stack_schema::SCHEMA, stack_schema::schema()),
        (answers::PAGE, answers::page()),
        (answers::SCHEMA, answers::schema()),
        (options::MODULE, options::module()),
    ];
    let mut pages = pages.map(|(name, fresh)| (name.to_owned(), fresh)).to_vec();
    pages.extend(python::modules()?);
    for (name, fresh) in &pages {
        let path = root.join(name);
        if fs::read_to_string(&path).is_ok_and(|current| current == *fresh) {
            continue;
        }
        if !check {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&path, fresh)?;
        }
        stale.push(name.clone());
    }
    let made: Vec<PathBuf> = pages.iter().map(|(name, _)| root.join(name)).collect();
    for path in modules_of_nothing(&root.join(python::PACKAGE), &made)? {
        if !check {
            fs::remove_file(&path)?;
        }
        stale.push(path.strip_prefix(root).unwrap_or(&path).display().to_string());
    }
    Ok(stale)
}

/// Modules of the package of answers that are not among those that are made.
fn modules_of_nothing(package: &Path, made: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    if !package.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(package)?.map(|entry| entry.map(|entry| entry.path()));
    let mut found = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    found.retain(|path| path.extension().is_some_and(|kind| kind == "py") && !made.contains(path));
    found.sort();
    Ok(found)
}

/// All schemes of one registry; their entries are alike, and types of their own.
macro_rules! schemes {
    ($($registry:tt)::+) => {{
        use $($registry)::+ as registry;
        let entries = registry::entries().into_iter();
        entries
            .map(|entry| RegisteredScheme {
                name: entry.name,
                doc: entry.doc,
                source: entry.source,
                needs: words(entry.needs),
                settings: registry::keys(entry.name).unwrap_or_default(),
            })
            .collect::<Vec<RegisteredScheme>>()
    }};
}

/// A registry and the key of a stack file that names one of its schemes.
struct Registry {
    key: &'static str,
    title: &'static str,
    schemes: Vec<RegisteredScheme>,
}

/// Every registry, in the order of the page.
fn registries() -> Vec<Registry> {
    let registry = |key, title, schemes| Registry { key, title, schemes };
    let policies = schemes!(cachewright_policy::registry);
    let partitions = schemes!(cachewright_partition::registry);
    let layouts = schemes!(cachewright_partition::layout::registry);
    let characterizers = schemes!(cachewright_policy::characterize::registry);
    let separations = schemes!(cachewright_ftl::separation);
    let reclaims = schemes!(cachewright_ftl::reclaim);
    vec![
        registry("policy", "Policies: which block stays", policies),
        registry("partition", "Partitioners: how much each tenant gets", partitions),
        registry("layout", "Layouts: which channels hold which tenant's blocks", layouts),
        registry(
            "characterize",
            "Characterizers: which kind of workload is running",
            characterizers,
        ),
        registry("separation", "Separations: which pages share a superblock", separations),
        registry("reclaim", "Reclaim: which superblock is cleaned next", reclaims),
    ]
}

/// The page of all registries.
fn page_of_registries() -> String {
    let mut page = String::from(
        "# Policies, partitioners, layouts, characterizers, separations and reclaim policies\n\n\
         This page is generated by `cargo xtask generate` from the registries in the code.\n",
    );
    registries().iter().for_each(|item| section(&mut page, item.title, &item.schemes));
    page
}

/// Needs in lower case, or a dash.
fn words<T: std::fmt::Debug>(needs: &[T]) -> String {
    let names: Vec<String> = needs.iter().map(|need| format!("{need:?}").to_lowercase()).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

fn section(page: &mut String, title: &str, schemes: &[RegisteredScheme]) {
    page.push_str(&format!("\n## {title}\n\n| name | what it does | source | needs |\n"));
    page.push_str("|---|---|---|---|\n");
    for RegisteredScheme { name, doc, source, needs, .. } in schemes {
        page.push_str(&format!("| `{name}` | {doc} | {source} | {needs} |\n"));
    }
    if schemes.iter().all(|scheme| scheme.settings.is_empty()) {
        return;
    }
    page.push_str("\n| scheme | setting | meaning | unit | default | range |\n");
    page.push_str("|---|---|---|---|---|---|\n");
    for scheme in schemes {
        for setting in &scheme.settings {
            page.push_str(&format!(
                "| `{}` | `{}` | {} | {} | {} | {} |\n",
                scheme.name,
                setting.name,
                setting.doc,
                setting.unit,
                setting.default_text().trim_matches('"'),
                setting.accepted
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_page_is_named_and_then_written() {
        let root = std::env::temp_dir().join(format!("xtask-generate-{}", std::process::id()));
        fs::create_dir_all(root.join("docs")).unwrap();
        let answers = [answers::PAGE, answers::SCHEMA, options::MODULE];
        let stack = [stack_file::PAGE, stack_schema::SCHEMA];
        let pages_of_text = [&[PAGE, devices::PAGE, formats::PAGE][..], &stack, &answers].concat();
        let classes: Vec<String> =
            python::modules().unwrap().into_iter().map(|(name, _)| name).collect();
        let every: Vec<&str> =
            pages_of_text.into_iter().chain(classes.iter().map(|name| &**name)).collect();
        assert_eq!(pages(&root, true).unwrap(), every);
        assert!(!root.join(PAGE).exists(), "checking writes nothing");
        assert_eq!(pages(&root, false).unwrap(), every);
        assert_eq!(pages(&root, true).unwrap(), Vec::<String>::new());
        fs::write(root.join(PAGE), "old").unwrap();
        assert_eq!(pages(&root, true).unwrap(), [PAGE]);
        let old = format!("{}/of_old.py", python::PACKAGE);
        fs::write(root.join(&old), "").unwrap();
        assert_eq!(pages(&root, false).unwrap(), [PAGE, &old]);
        assert!(!root.join(&old).exists(), "no record is declared in `of_old`");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_page_names_every_scheme() {
        let page = page_of_registries();
        assert!(page.contains("| `lru` |") && page.contains("| `hull` |"), "{page}");
        assert!(page.contains("| `none` |") && page.contains("| `greedy` |"), "{page}");
    }
}
