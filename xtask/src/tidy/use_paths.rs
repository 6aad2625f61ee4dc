//! The paths that `use` declarations of a file name.
//!
//! For: rules about what code may use. Must never know: any rule, macros that make declarations.

use super::SourceFile;
use super::mask::words;

/// Every path that `use` declarations name, with groups written out.
pub fn uses(source: &SourceFile) -> Vec<(usize, String)> {
    let code = source.code.as_str();
    let mut paths = Vec::new();
    for position in words(code, "use") {
        let end = code[position..].find(';').map_or(code.len(), |length| position + length);
        let tree: String = code[position + 3..end].split_whitespace().collect();
        let mut expanded = Vec::new();
        expand("", &tree, &mut expanded);
        paths.extend(expanded.into_iter().map(|path| (source.line_at(position), path)));
    }
    paths
}

/// Writes out one tree of `use`, as in `a::{b, c::{d}}`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let Some(open) = tree.find('{') else {
        paths.push(format!("{prefix}{tree}"));
        return;
    };
    let inner = tree[open + 1..].strip_suffix('}').unwrap_or(&tree[open + 1..]);
    let prefix = format!("{prefix}{}", &tree[..open]);
    let (mut depth, mut start) = (0_i32, 0);
    for (position, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                expand(&prefix, &inner[start..position], paths);
                start = position + 1;
            }
            _ => {}
        }
    }
    expand(&prefix, &inner[start..], paths);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_written_out_with_the_line_of_their_declaration() {
        let text = "use a::b;\n\nuse c::{\n    d,\n    e::{self, f},\n};\n";
        let found = uses(&SourceFile::new("crates/decide/cache/src/a.rs", text));
        let found: Vec<(usize, &str)> =
            found.iter().map(|(line, path)| (*line, path.as_str())).collect();
        let grouped = [(3, "c::d"), (3, "c::e::self"), (3, "c::e::f")];
        assert_eq!(found[..1], [(1, "a::b")]);
        // A comma at the end leaves an empty path behind the group.
        assert_eq!(found[1..4], grouped);
    }
}
